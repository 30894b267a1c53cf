"""The data files that can be downloaded: file name, public address, sha256 and size."""

from typing import NamedTuple


class DataFile(NamedTuple):
    """One file of the registry."""

    filename: str
    address: str
    sha256: str
    size: int  # bytes


_LMVL = "https://raw.githubusercontent.com/sckangz/LMVL/9212f871d2066c441fca669e888d11bae1af304e/"
_BROWNLEE = "https://raw.githubusercontent.com/jbrownlee/Datasets/d20fcb6402ae34e653d4513b00f39257bb37ed7f/"
_ZHANG = "https://raw.githubusercontent.com/ChuanbinZhang/Multi-view-datasets/03ead31e6538322e4e0701c3c28a01595c1a015d/"

FILES: dict[str, DataFile] = {
    "bbc": DataFile(
        "bbc_seg14of4.mat",
        _LMVL + "bbc_seg14of4.mat",
        "0eada4d3aebf49208032eccb4ddfa57e5aa64a615e30201cce458a0a0fb2189a",
        234387,
    ),
    "sonar": DataFile(
        "sonar.csv",
        _BROWNLEE + "sonar.csv",
        "3079c09b5d2789a0f96aff82c28e5164fafe2495c5f8da96c6c256c1bd25763f",
        87775,
    ),
    "handwritten": DataFile(
        "Handwritten.mat",
        _ZHANG + "Handwritten.mat",
        "6092a69891afa22785bffd5a4348f52d49a764aa5d40751ec2c4dc0f6ed48a44",
        3483654,
    ),
    "reuters": DataFile(
        "Reuters-1200.mat",
        _ZHANG + "Reuters-1200.mat",
        "cf549b72a66d7418a639a940899993c052bab9ec868fd493451cf85cd0d81d14",
        2611831,
    ),
    "msrc": DataFile(
        "MSRC-v5.mat",
        _ZHANG + "MSRC-v5.mat",
        "3b3adfad0b4e484cef1c1ecd64ec887ddde9f7655ed638e2fee1f047ae2c9ff0",
        1114703,
    ),
    "bbcsport": DataFile(
        "BBCSport.mat",
        _ZHANG + "BBCSport.mat",
        "98dbf2c405c132cc7e6558fd5da904626e7069915c510392e71baeaf4925d708",
        873335,
    ),
    "leaves": DataFile(
        "100Leaves.mat",
        _ZHANG + "100Leaves.mat",
        "4af6d9f6588a720df763580d273dc08014476ac5f64570b0bada8b63b9952f45",
        1048799,
    ),
    "cora": DataFile(
        "Cora.mat",
        _ZHANG + "Cora.mat",
        "6c7ad492ef75f94035eec3bb374cd12c1f56e26db6b7ebcbf873e5863686336f",
        250167,
    ),
    "acm": DataFile(
        "ACM.mat",
        _ZHANG + "ACM.mat",
        "026829f1ca80cae76c0298b2cd135dc851b9dfcf927a9550f0db543b9ecfbd89",
        1784927,
    ),
    "3sources": DataFile(
        "3Sources.mat",
        _ZHANG + "3Sources.mat",
        "8a94f0e554c5782bc87561314f1bad8ca206910125734f4dbe2492956528c9ae",
        114521,
    ),
    "movies": DataFile(
        "Movies.mat",
        _ZHANG + "Movies.mat",
        "7922e27da06361c0d74b5dd6477e6485d1f73a96cf0164e280e5b38864ffcbad",
        54712,
    ),
}
