"""The labelling studio, ``lmssc label``: a page on the user's own machine that shows samples and takes labels.

`answer_store` keeps every answer on disk; `live_scores` lets a label move all answers at once; `engine` fits in the
background and chooses what to ask next; `session` ties these together, for any number of annotators; `media` finds what
to show of a sample; `security`, `api` and `server` serve the page; `label_exchange` and `label_studio` talk to other
programs.
"""
