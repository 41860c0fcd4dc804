"""The parts of the query, each whole, with named holes for what differs between tables.

A part reads from those above it: ``given`` rows, ``aims`` (the targets of scored rows), ``marked``
(which rows are sampled items), ``compared``, ``targets``, ``ranked``, ``numbered``, and counts.
"""

from __future__ import annotations

RANKS_GIVEN = """\
SELECT model, who, position, {design}
FROM ({rows}) AS g"""

# -- scored rows: how many sampled items beat each target, how many tie with it --------------------

AIMS = """\
SELECT *, ROW_NUMBER() OVER (PARTITION BY {keys} ORDER BY {order}) AS number
FROM given WHERE target = 1"""

MARKED = """\
SELECT s.*, 1 - s.target AS other
FROM given AS s"""

#: A sampled item that is a target of its user does not count as sampled.
MARKED_BY_ITEM = """\
SELECT s.*, CASE WHEN s.target = 0 AND a.item IS NULL THEN 1 ELSE 0 END AS other
FROM given AS s
LEFT JOIN (SELECT DISTINCT {keys}, item FROM aims) AS a ON {same} AND s.item = a.item"""

#: The target's own row is joined too, so that a target without other items is kept.
COMPARED = """\
SELECT {columns}, MAX(a.score) AS level, SUM(s.other) AS sampled,
SUM(CASE WHEN s.score > a.score THEN s.other ELSE 0 END) AS better,
SUM(CASE WHEN s.score = a.score THEN s.other ELSE 0 END) AS tied
FROM marked AS s JOIN aims AS a ON {same}
GROUP BY {target}"""

TARGETS = """\
SELECT model, who, better, tied, level, {columns}
FROM compared"""

# -- ranks -----------------------------------------------------------------------------------------

RANKED = """\
SELECT model, who, sampled, {columns}
FROM {rows}"""

#: With the number of different catalogues of each model.
RANKED_WITH_SIZES = """\
SELECT model, who, sampled, {columns}
FROM {rows}
LEFT JOIN (
SELECT model AS whose, COUNT(DISTINCT items) AS sizes FROM {rows} GROUP BY model
) AS s ON model = whose"""

NUMBERED_WITHOUT_USERS = """\
SELECT model, who, sampled, items, size, {low} AS low, 1 AS relevant, 1 AS position
FROM ranked"""

NUMBERED = """\
SELECT r.model, r.who, r.sampled, r.items, r.size, {low} AS low, u.relevant AS relevant,
CASE WHEN u.relevant = 1 THEN 1 ELSE 0 END AS position{name}
FROM ranked AS r
JOIN (SELECT model, who, COUNT(*) AS relevant FROM ranked GROUP BY model, who) AS u
ON r.model = u.model AND r.who = u.who"""

# -- counts of cells, and of pairs of cells with one user ------------------------------------------

# Each of these, and each of the next section, has the columns `COUNTS` of `_sql` in their order.

CELLS = """\
SELECT model AS model, sampled, items, low, low AS high, relevant, position,
MIN(size) AS smallest, MAX(size) AS largest, COUNT(*) AS {count}, {no_pair}
FROM numbered
GROUP BY model, sampled, items, low, relevant, position"""

BINNED = """\
SELECT who, model, sampled, items, {bin} AS bin, relevant, position
FROM numbered"""

USER_BINS = """\
SELECT who, model, sampled, items, bin, relevant, position, COUNT(*) AS times
FROM binned
GROUP BY who, model, sampled, items, bin, relevant, position"""

PAIRS = """\
SELECT a.model, a.sampled, a.items, {null}, {null}, a.relevant, a.position, {null}, {null},
SUM(a.times * b.times), a.bin, b.model, b.sampled, b.items, b.bin, b.relevant, b.position
FROM user_bins AS a JOIN user_bins AS b ON a.who = b.who AND ({which})
GROUP BY a.model, a.sampled, a.items, a.bin, a.relevant, a.position,
b.model, b.sampled, b.items, b.bin, b.relevant, b.position"""

# -- counts where each user has one rank under each model ------------------------------------------

#: A row for each user, with the rank under each model.
WIDE = """\
SELECT who, COUNT(*) AS n, {ranks}
FROM ranked GROUP BY who"""

#: How many users have the same ranks; ``more`` is above 0 where a model has two targets of a user.
JOINT = """\
SELECT {models}, n - {known} AS more, COUNT(*) AS users
FROM wide GROUP BY {models}, n"""

CELLS_OF_MODEL = """\
SELECT {model} AS model, {sampled} AS sampled, {items} AS items, {rank} AS low, {rank} AS high,
1 AS relevant, 1 AS position, {items} AS smallest, {items} AS largest,
SUM(users) AS {count}, {no_pair}
FROM joint WHERE {column} IS NOT NULL GROUP BY {column}, more"""

PAIRS_OF_MODELS = """\
SELECT {model}, {sampled}, {items}, {null}, {null}, 1, 1, {null}, {null},
SUM(users), {bin}, {other_model}, {sampled}, {items}, {other_bin}, 1, 1
FROM joint WHERE {column} IS NOT NULL AND {other_column} IS NOT NULL GROUP BY {bin}, {other_bin}"""

# -- items that all targets share ------------------------------------------------------------------

#: The sampled items of each target, the best first: those numbered below its rank beat it.
FACED = """\
SELECT r.*, s.item, ROW_NUMBER() OVER (PARTITION BY r.model, r.who, r.name
ORDER BY s.score DESC, MD5(CONCAT('{seed}|', CONCAT(s.who, CONCAT('|', s.item))))) AS number
FROM numbered AS r JOIN marked AS s ON s.model = r.model AND s.who = r.who AND s.other = 1"""

OUTCOMES = """\
SELECT model, sampled, item, low, relevant, position,
SUM(CASE WHEN number < low THEN 1 ELSE 0 END) AS beaten, COUNT(*) AS faced
FROM faced
GROUP BY model, sampled, item, low, relevant, position"""
