DIALECTS=()
def counts_query(): return ""
