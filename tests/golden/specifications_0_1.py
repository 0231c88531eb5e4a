"""Specifications that between them use every block, column and aggregate of version 0.1."""

_PEOPLE = """\
[columns.age]
type = "integer"
lower = 18
upper = 99
missing = 40

[columns.sex]
type = "category"
keys = ["f", "m"]
missing = "f"

[columns.region]
type = "category"
keys = ["north", "east", "south", "west", "centre"]

[columns.salary]
type = "real"
lower = 0.0
upper = 100000.0
granularity = 10.0
missing = 0.0

[columns.diagnosis]
type = "category"
keys = ["none", "hypertension", "diabetes", "asthma", "depression"]

"""

_EVERYTHING = f"""\
[table]
source = "people.csv"
size = 150

[privacy]
unit = "person"
epsilon = 5.5
ledger = "../ledgers/period.ledger"
confidence = 0.9

{_PEOPLE}[[queries]]
name = "all"
ask = ["count", "units"]

[[queries]]
name = "pay"
ask = [
    "count",
    {{ sum = "salary" }},
    {{ mean = "salary" }},
    {{ variance = "salary" }},
    {{ deviation = "salary" }},
]
by = ["sex"]
weight = 2.5

[[queries]]
name = "ages of the ill"
ask = [{{ mean = "age" }}, {{ histogram = "age", edges = [18, 30, 50, 70, 99] }}]
where = {{ diagnosis = ["diabetes", "asthma"], age = {{ at_least = 20, below = 90 }} }}

[[queries]]
name = "shares"
ask = [
    {{ proportion = "diagnosis", of = ["asthma"] }},
    {{ proportion = "age", at_least = 65 }},
    {{ proportion = "age", below = 30 }},
]
by = "sex"
where = {{ region = "north" }}

[[queries]]
name = "crossed"
ask = [{{ contingency = ["sex", "diagnosis"] }}]

[[queries]]
name = "quartiles"
ask = [{{ quantiles = "salary", at = [0.25, 0.5, 0.75] }}]
by = ["sex"]

[[queries]]
name = "frequent"
ask = [{{ top = "region", k = 2 }}]

[[queries]]
name = "in the long form"
ask = [{{ kind = "mean", column = "age" }}, {{ kind = "count" }}]
"""

_GAUSSIAN = f"""\
[table]
source = "people.csv"

[privacy]
unit = "person"
epsilon = 3
delta = 1e-6
ledger = "../ledgers/zcdp.ledger"

{_PEOPLE}[[queries]]
name = "people"
ask = ["count", {{ mean = "age" }}]
by = ["region", "diagnosis"]

[[queries]]
name = "crossed"
ask = [{{ contingency = ["sex", "region"], consistent = true }}]

[[queries]]
name = "median"
ask = [{{ quantiles = "age", at = 0.5 }}]
"""

_METHODS = f"""\
[table]
source = "people.csv"
size = 150

[privacy]
unit = "person"
neighbours = "replace"
epsilon = 8
ledger = "../ledgers/pure.ledger"

{_PEOPLE}[[queries]]
name = "auto"
ask = [{{ quantiles = "age", at = [0.1, 0.9], method = "auto", law = "uniform" }}]

[[queries]]
name = "joint"
ask = [{{ quantiles = "age", at = [0.25, 0.5, 0.75], method = "joint" }}]

[[queries]]
name = "recursive"
ask = [{{ quantiles = "age", at = [0.25, 0.5, 0.75], method = "recursive" }}]

[[queries]]
name = "inverse"
ask = [{{ quantiles = "age", at = [0.5], method = "inverse" }}]

[[queries]]
name = "smooth"
ask = [{{ quantiles = "age", at = [0.5], method = "smooth" }}]

[[queries]]
name = "histogram"
ask = [{{ quantiles = "age", at = [0.5], method = "histogram", law = {{ mean = 50, deviation = 15 }} }}]

[[queries]]
name = "monotone histogram"
ask = [{{ quantiles = "age", at = [0.5], method = "monotone histogram" }}]

[[queries]]
name = "naive"
ask = [{{ quantiles = "age", at = [0.5], method = "naive" }}]
"""

_KEYS = """\
[table]
source = "visits.csv"
size = 240

[privacy]
unit = "patient"
column = "patient"
rows = 2
groups = 2
epsilon = 6
delta = 1e-2
reserve = 4e-3
ledger = "../ledgers/reserve.ledger"

[columns.town]
type = "text"
at_least = 3
other = "other towns"
missing = "other"

[columns.ward]
type = "category"
keys = ["medicine", "surgery"]

[columns.days]
type = "integer"
lower = 0
upper = 30

[columns.urgent]
type = "flag"
missing = false

[[queries]]
name = "towns"
ask = ["units", "count", { mean = "days" }]
by = ["town"]

[[queries]]
name = "wards"
ask = ["count", { proportion = "urgent" }]
by = ["ward"]

[[queries]]
name = "most visited"
ask = [{ top = "town", k = 2 }]
"""

_JOINS = """\
[table]
source = "visits.csv"

[privacy]
unit = "patient"
column = "patient"
rows = 3
groups = 1
epsilon = 4
delta = 1e-4
ledger = "../ledgers/reserve.ledger"

[joins.places]
file = "places.csv"
on = { town = "name" }
columns = ["region", "department"]

[columns.region]
type = "category"
keys = ["north", "south"]

[columns.ward]
type = "category"
keys = ["medicine", "surgery"]

[columns.department]
type = "category"
keys = ["Nord", "Pas-de-Calais", "Alpes-Maritimes", "Var"]

[hierarchies.place]
levels = ["region", "department"]
rows = [
    ["north", "Nord"],
    ["north", "Pas-de-Calais"],
    ["south", "Alpes-Maritimes"],
    ["south", "Var"],
]

[hierarchies.town]
levels = ["region", "town"]
file = "towns.csv"

[[queries]]
name = "places"
ask = [{ hierarchy = "place" }]

[[queries]]
name = "towns"
ask = [{ hierarchy = "town" }]

[[queries]]
name = "wards"
ask = [{ contingency = ["region", "ward"], consistent = true, margins = ["all", "ward"] }]

[[queries]]
name = "wards by region"
ask = ["count", "units"]
by = ["region", "ward"]
"""

_UNPAID = """\
[table]
source = "latin.csv"
encoding = "latin-1"

[privacy]
unit = "person"
epsilon = 1

[columns.class]
type = "category"
keys = [1, 2, 3]
missing = 1

[columns.height]
type = "real"
lower = 0
upper = 2.5

[[queries]]
name = "classes"
ask = ["count", { mean = "height" }]
by = ["class"]
"""

SPECIFICATIONS = {
    "everything": _EVERYTHING,
    "gaussian": _GAUSSIAN,
    "methods": _METHODS,
    "keys": _KEYS,
    "joins": _JOINS,
    "unpaid": _UNPAID,
}
