ENGINES=("polars",)
def is_pattern(x): return False
def open_files(x): raise NotImplementedError
