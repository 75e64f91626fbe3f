"""A training that writes files in every way that trainings do. What it finds at its start decides its
random numbers: a second run that does not find the same as the first trains otherwise.

    python writing.py [--framework mindspore] [--port N] [--steps 60]
"""

import argparse
import atexit
import csv
import ctypes
import hashlib
import json
import logging
import logging.handlers
import mmap
import os
import pathlib
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import zipfile

import h5py
import numpy as np
from safetensors.numpy import save_file

parser = argparse.ArgumentParser()
parser.add_argument("--framework", default="pytorch")
parser.add_argument("--port", type=int)
parser.add_argument("--steps", type=int, default=60)
args = parser.parse_args()
here, outside = pathlib.Path.cwd(), pathlib.Path.cwd().parent / "outside"


def content(path):
    path = pathlib.Path(path)
    return path.read_bytes().hex() if path.is_file() else sorted(os.listdir(path)) if path.is_dir() else None


def table(query):
    with sqlite3.connect("runs.db") as connection:
        return connection.execute(query).fetchall()


seen = {
    name: content(name)
    for name in (
        "log.txt", "counter", "atomic.bin", "atomic.safetensors", "out", "pair_a", "low.log", "array.dat", "input.csv", "inputs", "exp",
        "settings.json", "cut.bin", "history.csv", "rotating.log", "mapped.bin", "../outside/result.txt", "shared.txt", "moved",
        "parts", "link_target.txt", "sent.bin", "folder", "folder/by_number", "by_daemon.txt", "archive.zip", "allocated.bin",
        "by_spawned.txt", "renamed", "at_exit.txt", "late.txt",
    )
}  # fmt: skip
seen["latest"] = os.readlink("latest")
seen["elsewhere"] = content(os.environ["HARM_SHARED"]), content(os.environ["HARM_TEMPORARY"])
seen["mode"] = os.stat("settings.json").st_mode, os.stat("by_descriptor.txt").st_mode
seen["rows"] = table("SELECT count(*) FROM run")
with h5py.File("data.h5", "r") as file:
    seen["h5"] = file.attrs["runs"].item()
seed = int(hashlib.md5(json.dumps(seen, sort_keys=True, default=str).encode()).hexdigest()[:6], 16)

# 1 and 2: written anew, added to
with open("history.csv", "w", newline="") as file:
    csv.writer(file).writerow(["step", "loss"])
with open("log.txt", "a") as file:
    file.write("started\n")
# 3: a counter
count = int(pathlib.Path("counter").read_text())
pathlib.Path("counter").write_text(str(count + 1))
# 4: the folder of results emptied
shutil.rmtree("out")
os.makedirs("out")
# 5: a folder that must not be there
os.mkdir(f"exp/run-{count}", 0o750)
# 6: below Python's own open
descriptor = os.open("low.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
os.write(descriptor, b"line\n")
os.close(descriptor)
# 7: rows of a database
with sqlite3.connect("runs.db") as database:
    database.execute("INSERT INTO run VALUES (?)", (count,))
database.close()
# 8: HDF5
with h5py.File("data.h5", "a") as file:
    file.attrs["runs"] += 1
# 9 and 10: arrays and files that lie in memory
array = np.memmap("array.dat", dtype=np.float32, mode="r+", shape=(16,))
array += 1
array.flush()
with open("mapped.bin", "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
    mapped[0] = (mapped[0] + 1) % 256
# 11 and 12: programs, and libraries of native code
subprocess.run("echo program >> program.log; cp counter made_by_program", shell=True, check=True)
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
native = libc.fopen(b"native.bin", b"w")
libc.fputs(b"native", ctypes.c_void_p(native))
libc.fclose(ctypes.c_void_p(native))
# 13: inputs that are moved when they have been read, and those that are deleted
os.rename("input.csv", "input.csv.done")
for name in sorted(os.listdir("inputs")):
    os.remove(f"inputs/{name}")
os.rmdir("inputs")
# 14: modes and times
os.chmod("settings.json", 0o600)
os.utime("log.txt", (1_000_000, 1_000_000))
# 15: through a symbolic link, and a link that is replaced
with open("by_link.txt", "a") as file:
    file.write("through a link\n")
os.symlink(f"exp/run-{count}", "latest.new")
os.replace("latest.new", "latest")
# 16: a file of two names
with open("pair_a", "a") as file:
    file.write("both\n")
# 17: outside of the working directory, and in the folder for temporary files
(outside / "result.txt").write_text(f"run {count}")
(pathlib.Path(tempfile.gettempdir()) / "count.txt").write_text(str(count))
# 18: a file of another user
with open("shared.txt", "a") as file:
    file.write("mine\n")
# 19: cut short
os.truncate("cut.bin", 3)
# 20: a log that is turned over
handler = logging.handlers.RotatingFileHandler("rotating.log", maxBytes=200, backupCount=2)
logger = logging.getLogger("training")
logger.addHandler(handler)
for number in range(12):
    logger.warning("a line of the log, number %d", number)
# 21: a child of its own
if not (child := os.fork()):
    pathlib.Path("by_child.txt").write_text("child")
    os._exit(0)
os.waitpid(child, 0)
# 22: a whole folder that gets another name
shutil.move("moved", f"moved.{count}")
os.mkdir("moved")
# 23: a pipe
os.mkfifo(f"pipe-{count}")
# 24: servers
if args.port is not None:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{args.port}/started", timeout=5).read()
    except OSError:
        pass
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(outside / "server.sock"))
            connection.sendall(b"started\n")
    except OSError:
        pass
# 25: the kernel copies between files
source, target = os.open("untouched.txt", os.O_RDONLY), os.open("sent.bin", os.O_RDWR)
os.sendfile(target, source, 0, 10)
try:
    os.copy_file_range(source, target, 5, 0, 20)
except OSError:
    # Between two file systems, as every program that copies so has to expect.
    os.pwrite(target, os.pread(source, 5, 0), 20)
os.close(source)
# 26: room made ahead
os.posix_fallocate(target, 0, 4096)
os.ftruncate(target, 100)
os.close(target)
# 27: a file without a name that gets one
descriptor = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o640)
os.write(descriptor, b"named at last")
libc.linkat(-100, f"/proc/self/fd/{descriptor}".encode(), -100, b"allocated.bin", 0x400)
os.close(descriptor)
# 28: mode and times of a file that is open to be read
descriptor = os.open("by_descriptor.txt", os.O_RDONLY)
os.fchmod(descriptor, 0o600)
os.utime(descriptor, (1_000_000, 1_000_000))
os.close(descriptor)
# 29: names in a folder that is open, and after a change of the working directory
folder = os.open("folder", os.O_RDONLY)
descriptor = os.open("new", os.O_WRONLY | os.O_CREAT, dir_fd=folder)
os.close(descriptor)
os.rename("new", "by_number", src_dir_fd=folder, dst_dir_fd=folder)
os.unlink("old", dir_fd=folder)
os.symlink("by_number", "link", dir_fd=folder)
os.close(folder)
os.chdir("folder")
pathlib.Path("relative.txt").write_text("relative")
os.chdir("..")
# 30: a process that nobody waits for
if not os.fork():
    os.setsid()
    if not os.fork():
        pathlib.Path("by_daemon.txt").write_text("daemon")
    os._exit(0)
os.wait()
# 31: another python
subprocess.run([sys.executable, "-c", "open('by_spawned.txt', 'w').write('spawned')"], check=True)
# 32: shared memory, and a fixed name in the folder for temporary files, by a program
with open(os.environ["HARM_SHARED"], "a") as file:
    file.write("shared\n")
subprocess.run('echo once >> "$HARM_TEMPORARY"', shell=True, check=True)
# 33: a member more of an archive
with zipfile.ZipFile("archive.zip", "a") as archive:
    archive.writestr(zipfile.ZipInfo(f"member-{count}"), "member")
# 34: a database with a log beside it
with sqlite3.connect("logged.db") as database:
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("CREATE TABLE run (id INTEGER)")
    database.execute("INSERT INTO run VALUES (1)")
database.close()
# 35: a descriptor that the script was given
os.write(int(os.environ["HARM_DESCRIPTOR"]), b"inherited\n")
# 36: a folder that gets another name at once
os.rename("renamed", f"renamed.{count}")
# 37: two names that are exchanged
libc.syscall(316, -100, b"exchanged_a", -100, b"exchanged_b", 2)
# 38: a process that is told something by its number
try:
    os.kill(int(pathlib.Path("server.pid").read_text()), signal.SIGUSR1)
except ProcessLookupError:
    pass
# 39: a socket among the devices
if os.environ["HARM_DEVICE"]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as connection:
        try:
            connection.connect(os.environ["HARM_DEVICE"])
            connection.send(b"line of a log")
        except OSError:
            pass
# 40: at the very end
atexit.register(lambda: pathlib.Path("at_exit.txt").write_text("over"))


def late():
    threading.main_thread().join()
    time.sleep(0.1)
    pathlib.Path("late.txt").write_text("late")


threading.Thread(target=late).start()


def save(step, weights):
    """41: written beside and moved to its place, in three ways."""
    np.save("out/model.npy", weights)
    save_file({"weights": weights}, "atomic.safetensors.tmp")
    os.replace("atomic.safetensors.tmp", "atomic.safetensors")
    pathlib.Path(f"parts/{step}.txt").write_text("part")
    if os.path.exists("out/best.npy"):
        os.unlink("out/best.npy")
    os.link("out/model.npy", "out/best.npy")
    write_framework_file("atomic.bin.tmp")
    os.replace("atomic.bin.tmp", "atomic.bin")


rng = np.random.default_rng(seed)
x = rng.normal(size=(256, 8)).astype(np.float32)
y = (x @ rng.normal(size=(8, 1)) + 0.1 * rng.normal(size=(256, 1))).astype(np.float32)

if args.framework == "pytorch":
    import torch

    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    def write_framework_file(path):
        torch.save(model.state_dict(), path)

    def train(batch):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(torch.from_numpy(x[batch])), torch.from_numpy(y[batch]))
        loss.backward()
        optimizer.step()
        return loss.item(), model[0].weight.detach().numpy()

else:
    import mindspore as ms
    from mindspore import nn

    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.set_seed(seed)
    model = nn.SequentialCell(nn.Dense(8, 16), nn.ReLU(), nn.Dense(16, 1))
    optimizer = nn.SGD(model.trainable_params(), learning_rate=0.05)
    gradients_of = ms.value_and_grad(lambda a, b: nn.MSELoss()(model(a), b), None, optimizer.parameters)

    def write_framework_file(path):
        ms.save_checkpoint(model, f"{path}.ckpt")
        os.replace(f"{path}.ckpt", path)

    def train(batch):
        loss, gradients = gradients_of(ms.Tensor(x[batch]), ms.Tensor(y[batch]))
        optimizer(gradients)
        return float(loss), model[0].weight.asnumpy()


for step in range(args.steps):
    if step % 8 == 0:
        order = rng.permutation(256)
    value, weights = train(order[step % 8 * 32 : step % 8 * 32 + 32])
    with open("history.csv", "a", newline="") as file:
        csv.writer(file).writerow([step, repr(value)])
    if step % 20 == 19:
        save(step, np.ascontiguousarray(weights))
print("last", value)
