"""Fits and predictions on a Dask cluster. Nothing else of lmssc imports `dask`; `pip install 'lmssc[dask]'`."""
