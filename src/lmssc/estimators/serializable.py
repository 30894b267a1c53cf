"""The types that fitted estimators hold besides numbers, text and arrays: what model files and checkpoints may name."""

from lmssc.core.calibration import Calibration, GroupedCalibration
from lmssc.core.embedding import Embedding
from lmssc.core.incremental import UpdateMemory
from lmssc.core.label_placement import LabelPlacement
from lmssc.core.label_regression import LabelRegressor
from lmssc.core.linked_samples import LinkMemory
from lmssc.core.links import LinkWeights
from lmssc.core.mean_kernel import MeanKernel
from lmssc.core.new_samples import NewSampleProbe, Trust
from lmssc.core.nystroem import NystroemFeatures
from lmssc.core.second_opinion import Opinion, SecondOpinion
from lmssc.core.targets import Targets
from lmssc.data.canonical_order import CanonicalOrder
from lmssc.data.column_limits import ColumnLimits
from lmssc.data.layout import Layout
from lmssc.data.outliers import Outliers
from lmssc.data.scaling import ViewScaling
from lmssc.data.view import RawView, View
from lmssc.data.whitening import Whitening
from lmssc.persistence.codec import TypeTable

SERIALIZABLE_TYPES: dict[str, type] = {
    part.__name__: part
    for part in (
        Calibration,
        CanonicalOrder,
        ColumnLimits,
        Embedding,
        GroupedCalibration,
        LabelRegressor,
        Layout,
        LinkMemory,
        LinkWeights,
        MeanKernel,
        NewSampleProbe,
        NystroemFeatures,
        Opinion,
        Outliers,
        RawView,
        SecondOpinion,
        Targets,
        Trust,
        UpdateMemory,
        View,
        ViewScaling,
        Whitening,
    )
}
CHECKPOINT_TYPES = TypeTable(parts={**SERIALIZABLE_TYPES, LabelPlacement.__name__: LabelPlacement})
