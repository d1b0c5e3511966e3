//! `tamis collect`: writes what a host's own programs print of it into a folder, or prints the shell script that does so
//! where tamis is not installed. Both run the same commands, each by a shell, so that both write the same.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use packet::visible;
use pktio::file::{NamedBy, create_anew, read_text};
use replay::shell::command;
use replay::walk::HostFolder;

use crate::screen;

/// `tamis collect`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Run it as root: rules and connections are read by root alone. What a program does not tell is named, and so is one that is
not installed.
Exit codes: 0 done, 1 rules could not be had, or not root: the files that are missing are named; 2 usage error, or nothing
could be collected.
Examples:
  tamis collect fw && sudo tcpdump -i any -B 65536 -w fw.pcap && tamis replay fw fw.pcap
  tamis collect --script fw | ssh root@router sh -s | tar x")]
pub(crate) struct CollectArgs {
    /// The folder to write; with --script the folder that the archive will hold [default there: host]
    #[arg(value_name = "DIR", required_unless_present = "script")]
    pub dir: Option<String>,
    /// Print a POSIX shell script that collects on a machine without tamis, and writes a tar archive to standard output
    #[arg(long)]
    pub script: bool,
}

/// A file and the commands that print it, best first: the next one is tried where one fails.
struct Source {
    file: &'static str,
    commands: &'static [&'static str],
}

/// What `iptables-save` is where its rules are not all that the kernel may have.
const IS_NFT: &str = "iptables-save -V 2>/dev/null | grep -q nf_tables";

/// Exit code where something is missing.
const INCOMPLETE: u8 = 1;

/// Each file that is collected. A command begins with the program that it needs; blank rulesets try the next command.
const SOURCES: &[Source] = &[
    Source {
        file: "iptables.save",
        commands: &["iptables-save -c", "iptables-legacy-save -c", "iptables-nft-save -c"],
    },
    Source {
        file: "ip6tables.save",
        commands: &["ip6tables-save -c", "ip6tables-legacy-save -c", "ip6tables-nft-save -c"],
    },
    Source { file: "arptables.save", commands: &["arptables-save -c", "arptables-save"] },
    Source { file: "ebtables.save", commands: &["ebtables-save -c", "ebtables-save"] },
    Source { file: "ipset.save", commands: &["ipset save"] },
    Source {
        file: "routes.txt",
        commands: &["ip -4 route show table all; ip -6 route show table all"],
    },
    Source { file: "rule.txt", commands: &["ip -4 rule; ip -6 rule"] },
    Source { file: "links.txt", commands: &["ip -d -o link", "ip -o link"] },
    Source { file: "addresses.txt", commands: &["ip -o addr"] },
    Source { file: "neigh.txt", commands: &["ip neigh"] },
    Source { file: "maddr.txt", commands: &["ip maddr"] },
    Source { file: "bridge.txt", commands: &["bridge -o link"] },
    // What it has none of it says in its errors: without br_netfilter there is no net.bridge.
    Source {
        file: "sysctl.txt",
        commands: &["sysctl net.ipv4 net.ipv6 net.bridge net.netfilter 2>&1"],
    },
    Source { file: "uname.txt", commands: &["uname -srv"] },
    Source { file: "conntrack.txt", commands: &["conntrack -L", "cat /proc/net/nf_conntrack"] },
    Source { file: "nft.json", commands: &["nft -j list ruleset"] },
    Source { file: "rules.nft", commands: &["nft list ruleset"] },
    Source { file: "iptables-legacy.save", commands: &["iptables-legacy-save -c"] },
    Source { file: "ip6tables-legacy.save", commands: &["ip6tables-legacy-save -c"] },
    Source { file: "xfrm.txt", commands: &["ip xfrm policy"] },
];

/// The file that names the collected files, so that only these are ever overwritten, and says when they were.
const WRITTEN: &str = HostFolder::COLLECTED;

/// Where administrators' programs lie, and the language of what they print.
const ENVIRONMENT: &str = "PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin LC_ALL=C; export PATH LC_ALL";

/// What a folder has, too, that a run of tamis's own describes (`tamis ctl snapshot`).
pub(crate) const OF_RUNS: [&str; 2] = ["wires.txt", "bans.txt"];

/// The files of a host's folder.
pub(crate) fn files() -> impl Iterator<Item = &'static str> {
    SOURCES.iter().map(|source| source.file).chain(OF_RUNS)
}

/// Collects, or prints the script.
pub(crate) fn run(args: &CollectArgs) -> Result<ExitCode> {
    if args.script {
        screen::print(&script(args.dir.as_deref().unwrap_or("host")))?;
        return Ok(ExitCode::SUCCESS);
    }
    let name = args.dir.as_deref().context("expected a folder to write")?;
    let folder = Folder::open(name)?;
    let (mut written, mut missing) = (Vec::new(), Vec::new());
    for source in SOURCES {
        match source.collect()? {
            Collected::Text(text) => {
                folder.write(source.file, &text)?;
                written.push(source.file);
            }
            Collected::Nothing => {}
            Collected::NoProgram(program) => {
                let file = source.file;
                screen::tell(&format!("tamis collect: {file}: {program} is not installed"));
            }
            Collected::Failed(why) => {
                screen::tell(&format!("tamis collect: {}: {why}", source.file));
                missing.push(source);
            }
        }
    }
    if written.is_empty() {
        bail!("{name}: nothing could be collected");
    }
    folder.ends(written.iter().copied())?;
    let is_root = succeeds("[ \"$(id -u)\" = 0 ]")?;
    missing.retain(|source| !is_root || source.is_of_ip());
    // Where nft has no JSON, its text says the same.
    if written.contains(&"rules.nft") {
        missing.retain(|source| source.file != "nft.json");
    }
    if !missing.is_empty() {
        let files: Vec<&str> = missing.iter().map(|source| source.file).collect();
        let as_root = if is_root { "" } else { "; run it as root" };
        let files = files.join(", ");
        screen::tell(&format!("tamis collect: {name} is without {files}{as_root}"));
        return Ok(ExitCode::from(INCOMPLETE));
    }
    let then = command("replay", &[name, "capture.pcap"], "");
    screen::print(&format!(
        "{}: {} files\nnext: tcpdump -i any -B 65536 -w capture.pcap, then {then}\n",
        visible::word(name),
        written.len()
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// What became of a file.
enum Collected {
    Text(Vec<u8>),
    /// The host has nothing of this kind.
    Nothing,
    /// Neither this program nor a substitute is installed.
    NoProgram(&'static str),
    /// What a program said in place of what it was asked.
    Failed(String),
}

impl Source {
    /// Whether it has the rules that packets of IP meet: a folder that should have it and has not says nothing certain.
    fn is_of_ip(&self) -> bool {
        self.file.starts_with("ip6tables")
            || self.file.starts_with("iptables")
            || self.file == "nft.json"
    }

    /// Whether the source holds rules besides what `iptables-save` prints.
    fn is_beside(&self) -> bool {
        self.file.ends_with("-legacy.save")
    }

    /// What the first command that answers prints, or why none does. A blank ruleset is one only if no command failed:
    /// the rules may be where that looked.
    fn collect(&self) -> Result<Collected> {
        if self.is_beside() && !succeeds(IS_NFT)? {
            return Ok(Collected::Nothing);
        }
        let (mut blank, mut missing, mut failed) = (None, None, None);
        for command in self.commands {
            let program = program(command);
            if !succeeds(&format!("command -v {program} >/dev/null"))? {
                missing.get_or_insert(program);
                continue;
            }
            let output = shell(command)?;
            if !output.status.success() && output.stdout.is_empty() {
                let said = String::from_utf8_lossy(&output.stderr);
                let said = said.lines().next().unwrap_or("failed").to_owned();
                failed.get_or_insert_with(|| format!("{command}: {said}"));
                continue;
            }
            let mut lines = output.stdout.split(|byte| *byte == b'\n');
            if !self.file.ends_with("tables.save") && !self.is_beside()
                || lines.any(|line| line.starts_with(b"*"))
            {
                return Ok(Collected::Text(output.stdout));
            }
            blank.get_or_insert(output.stdout);
        }
        Ok(match (failed, blank, missing) {
            (Some(said), ..) => Collected::Failed(said),
            (None, Some(blank), _) if !self.is_beside() => Collected::Text(blank),
            (None, None, Some(program)) if !self.is_beside() => Collected::NoProgram(program),
            _ => Collected::Nothing,
        })
    }
}

/// What a command prints.
fn shell(command: &str) -> Result<Output> {
    let script = format!("{ENVIRONMENT}; {command}");
    Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).output().context("sh")
}

fn succeeds(command: &str) -> Result<bool> {
    Ok(shell(command)?.status.success())
}

/// The program that a command needs.
fn program(command: &'static str) -> &'static str {
    command.split(' ').next().unwrap_or(command)
}

/// The folder that is written.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Makes it, or empties it of what was collected before; what somebody else put there stays, and is refused.
    pub(crate) fn open(name: &str) -> Result<Self> {
        let folder = Self(PathBuf::from(name));
        match fs::create_dir(&folder.0) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(error).context(name.to_owned());
            }
            Err(_) if !folder.0.is_dir() => bail!("{name}: expected a folder, found a file"),
            _ => {}
        }
        let ours = match read_text(&folder.path(WRITTEN), NamedBy::Folder(&folder.0)) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).context(folder.path(WRITTEN).display().to_string()),
        };
        let ours: Vec<&str> = ours.lines().collect();
        let there: Vec<_> = files().filter(|file| folder.path(file).exists()).collect();
        for file in &there {
            if !ours.contains(file) {
                let path = folder.path(file);
                bail!("{}: exists, and tamis collect did not write it", path.display());
            }
        }
        for file in there {
            let path = folder.path(file);
            fs::remove_file(&path).with_context(|| path.display().to_string())?;
        }
        Ok(folder)
    }

    fn path(&self, file: &str) -> PathBuf {
        Path::new(&self.0).join(file)
    }

    /// Writes one of its files.
    pub(crate) fn write(&self, file: &str, text: &[u8]) -> Result<()> {
        let path = self.path(file);
        let written = create_anew(&path, 0o666).and_then(|mut file| file.write_all(text));
        written.with_context(|| path.display().to_string())
    }

    /// Says which files were written, so that they may be overwritten.
    pub(crate) fn ends<'f>(&self, written: impl Iterator<Item = &'f str>) -> Result<()> {
        let names: String = written.map(|name| format!("{name}\n")).collect();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let time =
            format!("{}{}.{:09}\n", HostFolder::COLLECTED_AT, now.as_secs(), now.subsec_nanos());
        self.write(WRITTEN, (time + &names).as_bytes())
    }
}

/// The script: it reads nothing but itself, whole before it begins, and leaves nothing behind.
fn script(folder: &str) -> String {
    let mut gets = String::new();
    for source in SOURCES {
        let commands: Vec<String> =
            source.commands.iter().map(|command| format!("'{command}'")).collect();
        let only = if source.is_beside() { format!("{IS_NFT} && ") } else { String::new() };
        gets.push_str(&format!("  {only}get {} {}\n", source.file, commands.join(" ")));
    }
    let folder = format!("'{}'", folder.trim_start_matches('/').replace('\'', r"'\''"));
    SCRIPT
        .replace("@ENVIRONMENT@", ENVIRONMENT)
        .replace("@FOLDER@", &folder)
        .replace("@WRITTEN@", WRITTEN)
        .replace("@COLLECTED_AT@", HostFolder::COLLECTED_AT)
        .replace("@GETS@", gets.trim_end())
}

const SCRIPT: &str = r##"#!/bin/sh
# Made by tamis collect --script: what this host's own programs print of it, as a tar archive on standard output.
#   ssh root@router sh -s < collect.sh | tar x
# It changes nothing on this host but for a folder under /tmp, which it removes.

say() {
  echo "tamis collect: $*" >&2
}

# get FILE COMMAND...: what the first command that answers prints. A blank ruleset is one only if no command failed.
get() {
  file=$1
  shift
  absent= failed= blank=
  for command; do
    program=${command%% *}
    if ! command -v "$program" >/dev/null; then
      absent=${absent:-"$program is not installed"}
      continue
    fi
    if (eval "$command") >"$work/out" 2>"$work/said" </dev/null || [ -s "$work/out" ]; then
      case $file in
        *tables.save | *-legacy.save)
          if ! grep -q '^\*' "$work/out"; then
            [ -n "$blank" ] || mv "$work/out" "$work/blank"
            blank=yes
            continue
          fi ;;
      esac
      mv "$work/out" "$folder/$file"
      echo "$file" >>"$folder/@WRITTEN@"
      return
    fi
    read -r said <"$work/said" || said=failed
    failed=${failed:-"$command: $said"}
  done
  if [ -n "$failed" ]; then
    say "$file: $failed"
    case $file in
      iptables* | ip6tables* | nft.json) rulesets="$rulesets $file" ;;
    esac
    missing="$missing $file"
    return
  fi
  case $file in *-legacy.save) return ;; esac
  if [ -n "$blank" ]; then
    mv "$work/blank" "$folder/$file"
    echo "$file" >>"$folder/@WRITTEN@"
  else
    say "$file: $absent"
  fi
}

collect() {
  umask 077
  @ENVIRONMENT@
  name=@FOLDER@
  work=$(mktemp -d /tmp/tamis-collect.XXXXXX 2>/dev/null) || work=
  if [ -z "$work" ]; then
    work=/tmp/tamis-collect.$$
    mkdir "$work" || exit 1
  fi
  trap 'rm -rf "$work"' EXIT
  trap 'exit 1' HUP INT TERM
  folder=$work/archive/$name
  mkdir -p "$folder" || exit 1
  missing= rulesets=
@GETS@
  echo "@COLLECTED_AT@$(date +%s)" >>"$folder/@WRITTEN@"
  (cd "$work/archive" && tar -cf - "$name") || exit 1
  if [ "$(id -u)" != 0 ] && [ -n "$missing" ]; then
    say "$name is without$missing; run it as root"
    exit 1
  fi
  if [ -n "$rulesets" ]; then
    say "$name is without$rulesets"
    exit 1
  fi
}

collect
"##;
