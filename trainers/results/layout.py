"""The names of the files and folders that runs and sweeps write. Needs no TensorFlow."""

# Of every run.
CONFIG, STATUS = "config.json", "status"
RECORDS, RUN_RESULTS, BOARD = "metrics.jsonl", "results.json", "tensorboard"
CHECKPOINTS, BASELINES = "checkpoints", "baselines.json"
TEST_TRANSLATIONS, VOCABULARY, SUBWORDS = "test.translations.txt", "vocabulary.txt", "subwords"
# Of programs that measure and draw.
ANALYSIS_TABLE, SIMULATION_TABLE = "gradient_analysis.csv", "update_magnitudes.csv"
CHECKS = "warmup_checks.csv"  # of a study
# Of a sweep, and of each of its trials.
RESULTS, SUMMARY, SUMMARY_TABLE, TUNED = "results.csv", "summary.md", "summary.csv", "tuned.csv"
TRIALS, TUNER = "trials", "tuner"
RESULT, ATTEMPTS = "result.json", "attempts.json"
AGAIN = "@"  # between trial and number in the name of a folder that another worker has taken over

# What a folder without its config.json must not hold: it is unknown whose it is.
FOLDERS = (CHECKPOINTS, BOARD, TRIALS, TUNER)
FILES = (
    *(STATUS, RECORDS, RUN_RESULTS, "*.keras", BASELINES, TEST_TRANSLATIONS, VOCABULARY, f"{SUBWORDS}.*"),
    *(RESULTS, SUMMARY_TABLE, SUMMARY, TUNED),
    *("update_magnitudes.*", "factors.*", "effective_warmup.*", "gradient_analysis.*"),
)
