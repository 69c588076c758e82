"""A stand-in for a SLURM queue: `sbatch`, `squeue` and `scancel`, which run a job's script on this machine.

`sbatch SCRIPT` answers as SLURM's does, and runs the script in the background, in a process group of its own. With
`#SBATCH --array=1-3`, or `--array=2,5-6` before the script, it runs it once for each number, one after another, with
SLURM_ARRAY_TASK_ID and SLURM_JOB_ID set. `scancel ID` ends the job's process group, `squeue` lists the jobs that run.
"""

import os
import subprocess
import sys
from pathlib import Path

SBATCH = """\
import os, re, subprocess, sys
from pathlib import Path

home = Path(os.environ["SLURM_STAND_IN"])
*options, file = sys.argv[1:]
script = Path(file).read_text()  # the file may be gone when the job begins
header = "\\n".join([*re.findall(r"^#SBATCH (.*)$", script, re.M), *options])
number = 1000 + len(list(home.glob("*.sh")))
job = home / f"{number}.sh"
job.write_text(script)
job.chmod(0o755)
tasks = []
if found := re.search(r"--array[= ](\\S+)", header):
    for part in found[1].split("%")[0].split(","):
        first, _, last = part.partition("-")
        tasks += range(int(first), int(last or first) + 1)
one = "SLURM_JOB_ID={n} {task} {job} >> {log} 2>&1"
lines = [one.format(n=number, task=f"SLURM_ARRAY_TASK_ID={t}", job=job, log=home / f"{number}_{t}.log") for t in tasks]
lines = lines or [one.format(n=number, task="", job=job, log=home / f"{number}.log")]
end = f"touch {home / f'{number}.done'}"
process = subprocess.Popen(["bash", "-c", "; ".join([*lines, end])], start_new_session=True, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
(home / f"{number}.pid").write_text(str(process.pid))
print(f"Submitted batch job {number}")
"""

SCANCEL = """\
import contextlib, os, signal, sys
from pathlib import Path

for number in sys.argv[1:]:
    with contextlib.suppress(OSError, ValueError):
        os.killpg(int((Path(os.environ["SLURM_STAND_IN"]) / f"{number}.pid").read_text()), signal.SIGTERM)
"""

SQUEUE = """\
import os
from pathlib import Path

home = Path(os.environ["SLURM_STAND_IN"])
print("JOBID ST")
for file in sorted(home.glob("*.pid")):
    try:
        os.killpg(int(file.read_text()), 0)
    except OSError:
        continue
    if not file.with_suffix(".done").exists():
        print(file.stem, "R")
"""


def slurm_stand_in(folder: Path) -> dict[str, str]:
    "Put the three commands into a folder; the environment in which they are found."
    folder.mkdir()
    for name, source in (("sbatch", SBATCH), ("scancel", SCANCEL), ("squeue", SQUEUE)):
        (folder / f"{name}.py").write_text(source)
        (folder / name).write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "{folder / name}.py" "$@"\n')
        (folder / name).chmod(0o755)
    return {"SLURM_STAND_IN": str(folder), "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def jobs_running(env: dict[str, str]) -> list[str]:
    "The numbers of the jobs that run."
    said = subprocess.run(["squeue"], env={**os.environ, **env}, capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in said.splitlines()[1:]]
