"""A set in the format of FlashInfer-Trace and one in that of SOL-ExecBench, written for the tests, with solutions."""
