import csv
import shutil

from benchmarks.gibbs import run


def test_command_writes_table_and_page(tmp_path, capsys):
    shutil.copy(run.HERE / "README.md", tmp_path)
    run.main([
        "--network", "tests.models.tiny_roll_network:TinyRollNetwork", "--bars", "1", "--sweeps", "2", "--naive-steps",
        "2", "--pairs", "1", "--device", "cpu", "--out", str(tmp_path),
    ])  # fmt: skip
    with (tmp_path / "results.csv").open(encoding="utf-8", newline="") as file:
        whole, beside = csv.DictReader(file)
    assert (whole["steps"], whole["sweeps"], whole["sampler"]) == ("32", "2", "exact")
    assert (beside["steps"], beside["sampler"]) == ("2", "both")
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "| tests.models.tiny_roll_network:TinyRollNetwork | threshold | 32 | 2 |" in page
    assert f"threads: {whole['threads']}" in page
    assert "sweep 1:" in capsys.readouterr().err
