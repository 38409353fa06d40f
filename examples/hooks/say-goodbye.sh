# SessionEnd: a report; it is told at least once, and its id tells a repetition.
cat >> goodbyes.jsonl
