"""A coder that knows one defect: reads its task, answers, edits the tree it is started in."""

import json
import pathlib
import sys

SOURCE = pathlib.Path("src/percent.rs")
TEST = pathlib.Path("tests/hex_digits.rs")
CASE = """//! Upper-case and lower-case digits of an escape mean the same.

#[test]
fn the_last_hexadecimal_digit_decodes_in_both_cases() {
    assert_eq!(percent::decode("%2f"), Ok("/".to_string()));
    assert_eq!(percent::decode("%2F"), Ok("/".to_string()));
}
"""


def diagnose(task):
    failed = [fact.get("test_name") for fact in task["extraction"]]
    if "percent::tests::lower_case_digits_decode" not in failed or str(SOURCE) not in task["files"]:
        sys.exit("this is not the defect that I know")
    return {
        "cause": "hex_value takes the lower-case digits a to e only.",
        "files": [str(SOURCE), str(TEST)],
        "confidence": 900,
        "summary": "The range of lower-case digits ends one too early.",
    }


def fix(task):
    assert task["diagnosis"]["files"] == [str(SOURCE), str(TEST)]
    SOURCE.write_text(SOURCE.read_text().replace("b'a'..=b'e'", "b'a'..=b'f'"))
    TEST.parent.mkdir(exist_ok=True)
    TEST.write_text(CASE)
    return {"title": "Accept the lower-case digit f in escapes", "summary": "The range ended at e; it now ends at f."}


print(json.dumps({"diagnose": diagnose, "fix": fix}[sys.argv[1]](json.load(sys.stdin))))
