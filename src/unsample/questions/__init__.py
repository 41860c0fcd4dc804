"""What people ask, one folder for each question.

Each has the same files: ``ask.py`` holds the function that users call, ``result.py`` what it
returns, ``view.py`` what is shown of it, and ``command.py`` the verb of the command.
"""
