"""Where the documentation is, for the "?" in scikit-learn's HTML representation of an estimator."""

DOCUMENTATION_URL = "https://github.com/lmssc/lmssc/blob/main/docs"


class DocumentationLinkMixin:
    """Links the HTML representation of an estimator to its page; a subclass in another package gets no link."""

    _doc_link_module = "lmssc"
    _doc_link_template = f"{DOCUMENTATION_URL}/api/estimators.md"
