"""Tests of the table of ceilings: python3 .ci/costs/tests.py; make costs runs them first."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import ceilings

TABLE = "# row\na.b      100  instructions/packet  packets, 20 of them\nc          -  kB                   memory\n"


class Ceilings(unittest.TestCase):
    def test_rows_are_read_and_lowered_in_their_place(self):
        self.assertEqual(ceilings.read(TABLE), {"a.b": (100, "instructions/packet"), "c": (None, "kB")})
        lowered = ceilings.lowered(TABLE, {"a.b": 98, "c": 1050})
        self.assertEqual(ceilings.read(lowered), {"a.b": (98, "instructions/packet"), "c": (1050, "kB")})
        self.assertEqual([line.index("packets") for line in (TABLE.splitlines()[1], lowered.splitlines()[1])], [35, 35])

    def test_a_regression_of_3_percent_is_over_and_a_gain_of_3_percent_lowers(self):
        ceiling = ceilings.lower_to(5000, "instructions/packet")
        self.assertLess(5000, ceiling)
        self.assertGreater(5000 * 1.03, ceiling)
        self.assertFalse(ceilings.is_low(5000, ceiling, "instructions/packet"))
        self.assertTrue(ceilings.is_low(5000 * 0.97, ceiling, "instructions/packet"))

    def test_higher_ceilings_and_rows_that_went_are_raised(self):
        self.assertEqual(ceilings.raised(TABLE, TABLE.replace("100", " 99").replace("-", "7")), [])
        self.assertEqual(ceilings.raised(TABLE, TABLE.replace("100", "101")), ["a.b"])
        self.assertEqual(ceilings.raised(TABLE, "# row\n"), ["a.b"])
        self.assertEqual(ceilings.raised(TABLE, TABLE.replace("100", "  -")), ["a.b"])

    def test_a_ceiling_is_raised_alone_and_with_a_reason(self):
        def git(*arguments):
            identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
            subprocess.run(["git", *identity, *arguments], check=True, stdout=subprocess.DEVNULL)

        def commit(table, code, *messages):
            pathlib.Path("table").write_text(table)
            pathlib.Path("code").write_text(code)
            git("add", ".")
            git("commit", "-q", *[word for message in messages for word in ("-m", message)])
            return ceilings.smuggled("table", table)

        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            try:
                os.chdir(folder)
                git("init", "-q")
                higher = TABLE.replace("100", "105")
                self.assertIsNone(commit(TABLE, "1", "first"))
                self.assertIsNone(ceilings.smuggled("table", higher))
                pathlib.Path("code").write_text("2")
                self.assertIn("together with code", ceilings.smuggled("table", higher))
                self.assertIn("other files", commit(higher, "2", "both", "why"))
                self.assertIn("does not say why", commit(higher.replace("105", "110"), "2", "raised"))
                self.assertIsNone(commit(higher.replace("105", "120"), "2", "raised", "why"))
                self.assertIsNone(commit(higher.replace("105", "120"), "3", "later"))
            finally:
                os.chdir(before)


unittest.main()
