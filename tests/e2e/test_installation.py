"""What `cmake --install` lays down, and that the manual and the completions know what the programs know."""
import pathlib
import re
import shutil
import subprocess

import pytest

from servers import NESTGUARD, ROOT, run_nestguard
from terminal import Terminal, plain

BUILD = pathlib.Path(NESTGUARD).parent
PAGES = ["man1/nestguard.1", "man1/nestguard-ctl.1", "man5/nestguard.yaml.5"]


def run(*words, **options):
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder that stands for /usr."""
    prefix = tmp_path_factory.mktemp("usr")
    run("cmake", "--build", BUILD, "--target", "nestguard", "manual_pages")
    run("cmake", "--install", BUILD, "--prefix", prefix)
    return prefix


def page(installed, name):
    return run("man", "--warnings", "-l", installed / "share/man" / name,
               env={"PATH": "/usr/bin:/bin", "MANWIDTH": "400", "LC_ALL": "C.UTF-8"})


def test_everything_has_its_place(installed):
    found = {str(path.relative_to(installed)) for path in installed.rglob("*") if path.is_file()}
    assert found == {
        "bin/nestguard", "bin/nestguard-ctl", *(f"share/man/{page}" for page in PAGES),
        "share/bash-completion/completions/nestguard",
        "share/bash-completion/completions/nestguard-ctl",
        "share/zsh/vendor-completions/_nestguard",
        "share/doc/nestguard/LICENSE", "share/doc/nestguard/README.md",
        "share/doc/nestguard/examples/nestguard.yaml",
        "share/nestguard/alerts.yaml", "share/nestguard/dashboard.json", "share/nestguard/published.lua",
        "lib/systemd/system/nestguard.service", "lib/sysusers.d/nestguard.conf"}


@pytest.mark.parametrize("name", PAGES)
def test_man_understands_every_page(installed, name):
    done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z",
                           installed / "share/man" / name], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_the_manual_has_every_setting_and_command(installed):
    said = run_nestguard("--help")[1]
    settings = re.findall(r"^  (?!nestguard )([a-z_]+) +[^ ]", said, re.M)
    assert len(settings) > 40
    text = page(installed, "man5/nestguard.yaml.5")
    assert [name for name in settings if f"{name} (" not in text] == []
    text = page(installed, "man1/nestguard-ctl.1")
    commands = re.findall(r"^  ([a-z]+)(?: |$)", run_nestguard("ctl", "--help")[1], re.M)
    assert len(commands) > 8
    assert [name for name in commands if not re.search(rf"^ +{name}\b", text, re.M)] == []
    assert "nestguard filter build KEYS FILE [--fpr P]" in page(installed, "man1/nestguard.1")


@pytest.mark.parametrize("words, offered", [
    ("nestguard ''", "serve check ctl plan filter --help --version"),
    ("nestguard ch", "check"),
    ("nestguard serve ''", "-c"),
    ("nestguard ctl gu", "guarding"),
    ("nestguard-ctl gu", "guarding"),
    ("nestguard ctl --control 127.0.0.1:1 re", "ready rebuild reload"),
    ("nestguard ctl -c file delete --", "--row --block"),
    ("nestguard ctl status ''", "--json --table --watch"),
    ("nestguard ctl rebuild ''", ""),
    ("nestguard ctl push items /etc/host", "/etc/host.conf /etc/hostname /etc/hosts"),
    ("nestguard ctl status --watch ''", ""),
    ("nestguard plan --", "--keys --fpr --table"),
    ("nestguard filter bu", "build"),
    ("nestguard serve -c /etc/host", "/etc/host.conf /etc/hostname /etc/hosts"),
])
def test_bash_completes(installed, words, offered):
    script = f"""
        source {installed}/share/bash-completion/completions/nestguard
        COMP_WORDS=({words}) COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        _nestguard && echo "${{COMPREPLY[@]}}" """
    found = run("bash", "-c", script, cwd=installed).split()
    wanted = offered.split()
    assert found == wanted if "/etc" not in offered else set(found) >= set(wanted)


@pytest.fixture(scope="module")
def shell_home(installed, tmp_path_factory):
    """Of a person whose zsh finds what was installed."""
    home = tmp_path_factory.mktemp("zsh")
    (home / "nestguard.yaml").touch()
    (home / ".zshrc").write_text(f"""
        fpath=({installed}/share/zsh/vendor-completions $fpath)
        path=({installed}/bin $path)
        autoload -Uz compinit && compinit -u -d {home}/dump
        LISTMAX=1000 PS1='ready> ' RPS1=''
        cd {home}
        """)
    return home


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
@pytest.mark.parametrize("typed, offered", [
    ("nestguard ", ["serve", "check", "ctl ", "plan", "filter", "--help", "--version"]),
    ("nestguard ch", ["check"]),
    ("nestguard ctl ", ["admit", "attack", "config", "delete", "explain", "guarding", "health", "metrics",
                        "push", "rebuild", "reload", "status", "top"]),
    ("nestguard-ctl gu", ["guarding"]),
    ("nestguard ctl --control 127.0.0.1:1 re", ["ready", "rebuild", "reload"]),
    ("nestguard ctl status --", ["--json", "--table", "--watch"]),
    ("nestguard ctl delete --", ["--row", "--block"]),
    ("nestguard ctl push items nest", ["nestguard.yaml"]),
    ("nestguard plan --", ["--keys", "--fpr", "--table"]),
    ("nestguard filter ", ["build", "info", "query"]),
    ("nestguard serve -c nest", ["nestguard.yaml"]),
])
def test_zsh_completes(shell_home, typed, offered):
    """On a terminal, by the key that a person presses."""
    terminal = Terminal("-d", "-i", program="zsh", ZDOTDIR=str(shell_home), HOME=str(shell_home),
                        LC_ALL="C.UTF-8")
    try:
        terminal.read(lambda text: "ready> " in text)
        terminal.press(typed)
        terminal.read(lambda text: plain(text).endswith(typed))
        terminal.press("\t")
        left = [word.removeprefix(typed.split()[-1]) if len(offered) == 1 else word for word in offered]
        said = terminal.read(lambda text: all(word in plain(text) for word in left))
        assert "command not found" not in said and "_arguments" not in said
    finally:
        terminal.close()


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
def test_the_unit_asks_for_little(installed, tmp_path):
    """systemd's own judgement of what a service may do."""
    unit = tmp_path / "nestguard.service"
    unit.write_text((installed / "lib/systemd/system/nestguard.service").read_text()
                    .replace(str(installed), "/usr"))
    said = run("systemd-analyze", "security", "--offline=true", "--no-pager", unit)
    score = float(re.search(r"exposure level for nestguard.service: ([0-9.]+)", said).group(1))
    assert score <= 2.0, said
    text = unit.read_text()
    for line in ("Type=notify", "WatchdogSec=", "ExecReload=", "LimitNOFILE=", "User=nestguard"):
        assert line in text, line


def test_the_sample_is_the_one_of_the_tree(installed):
    sample = installed / "share/doc/nestguard/examples/nestguard.yaml"
    assert sample.read_text() == pathlib.Path(ROOT, "deploy/nestguard.yaml").read_text()
