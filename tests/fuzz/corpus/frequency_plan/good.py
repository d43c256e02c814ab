[
[('forward', 1410), ('backward', 1215)],
[('forward', 1200), ('backward', 1005)],
]
# Iteration 0 cost change: 0.5
