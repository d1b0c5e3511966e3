//! `programs`: real programs through this machine's kernel, and whether a replay of what tcpdump recorded counts as
//! the kernel did.
//!
//! `programs [SCENE...] [--tamis BINARY] [--out DIR] [--way any|each|in|shuffled|nflog|one|short|dumpcap|late]
//! [--recorded] [--keep DIR] [--list] [--brief]`. BINARY is `target/release/tamis` unless told, DIR `target/programs`.
//! `--recorded` records nothing and compares what lies in DIR, be it a folder of any other name. `--keep` records small
//! ones, and keeps of each what a test without root needs. Exit code 1: a counter is surely wrong, a packet
//! contradicts, or too much is unknown; 3: this machine cannot play a scene that was asked for by name, or any at all.

use std::env;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use lab::programs::compare::compare;
use lab::programs::stage::{Size, lacking, play};
use lab::programs::{Recording, SCENES, Scene, Way};

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("programs: {error}");
            ExitCode::from(2)
        }
    }
}

struct Args {
    scenes: Vec<Scene>,
    tamis: PathBuf,
    out: PathBuf,
    ways: Vec<Way>,
    keep: Option<PathBuf>,
    is_recorded: bool,
    is_brief: bool,
    is_list: bool,
}

fn args() -> io::Result<Args> {
    let mut args = Args {
        scenes: Vec::new(),
        tamis: PathBuf::from("target/release/tamis"),
        out: PathBuf::from("target/programs"),
        ways: Vec::new(),
        keep: None,
        is_recorded: false,
        is_brief: false,
        is_list: false,
    };
    let mut names = Vec::new();
    let mut words = env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value =
            || words.next().ok_or_else(|| io::Error::other(format!("{word} wants a value")));
        match word.as_str() {
            "--tamis" => args.tamis = PathBuf::from(value()?),
            "--out" => args.out = PathBuf::from(value()?),
            "--way" => {
                let name = value()?;
                let way = Way::ALL.into_iter().find(|way| way.name() == name);
                args.ways.push(way.ok_or_else(|| io::Error::other(format!("no way: {name}")))?);
            }
            "--keep" => args.keep = Some(PathBuf::from(value()?)),
            "--recorded" => args.is_recorded = true,
            "--brief" => args.is_brief = true,
            "--list" => args.is_list = true,
            name => names.push(name.to_owned()),
        }
    }
    for name in names {
        let foreign = args.is_recorded && args.out.join(&name).is_dir();
        let scene = Scene::named(&name);
        let scene =
            scene.or(foreign.then(|| Scene { name: name.clone().leak(), ..Scene::FOREIGN }));
        args.scenes.push(scene.ok_or_else(|| io::Error::other(format!("no scene: {name}")))?);
    }
    if args.ways.is_empty() {
        args.ways = Way::ALL.to_vec();
    }
    Ok(args)
}

fn run() -> io::Result<ExitCode> {
    let mut args = args()?;
    if args.is_list {
        SCENES.iter().for_each(|scene| println!("{:10} {}", scene.name, scene.about()));
        return Ok(ExitCode::SUCCESS);
    }
    if let (false, Some(reason)) = (args.is_recorded, lacking()) {
        eprintln!("SKIPPED: {reason}");
        return Ok(ExitCode::from(3));
    }
    let is_named = !args.scenes.is_empty();
    if !is_named {
        args.scenes = SCENES.to_vec();
    }
    let mut is_good = true;
    let mut played = 0;
    for &scene in &args.scenes {
        let Some(recording) = recording(scene, &args)? else {
            if is_named {
                return Ok(ExitCode::from(3));
            }
            continue;
        };
        played += 1;
        for loss in recording.losses() {
            println!("{:10} lost: {loss}", scene.name);
        }
        if recording.has(Way::Short, scene) && !recording.has(Way::Dumpcap, scene) {
            eprintln!("SKIPPED: {}: dumpcap: not installed", scene.name);
        }
        for &way in args.ways.iter().filter(|&&way| recording.has(way, scene)) {
            is_good &= tell(scene, &recording, way, &args);
        }
    }
    Ok(match (played, is_good) {
        (0, _) => ExitCode::from(3),
        (_, true) => ExitCode::SUCCESS,
        (_, false) => ExitCode::FAILURE,
    })
}

/// The scene's recording: made now, or the one that lies there.
fn recording(scene: Scene, args: &Args) -> io::Result<Option<Recording>> {
    let dir = args.out.join(scene.name);
    if args.is_recorded {
        return Ok(dir.exists().then(|| Recording::at(dir)));
    }
    let lacks = scene.lacks();
    if !lacks.is_empty() {
        eprintln!("SKIPPED: {}: not installed: {}", scene.name, lacks.join(" "));
        return Ok(None);
    }
    let Some(keep) = &args.keep else { return play(scene, &dir, Size::Whole).map(Some) };
    let recording = play(scene, &dir, Size::Small)?;
    recording.keep(&keep.join(scene.name))?;
    Ok(Some(recording))
}

/// Compares, prints, and says whether all is as it must be.
fn tell(scene: Scene, recording: &Recording, way: Way, args: &Args) -> bool {
    let head = format!("{:10} {:8}", scene.name, way.name());
    let comparison = match compare(scene, recording, way, &args.tamis) {
        Ok(comparison) => comparison,
        Err(error) => {
            println!("{head} failed: {error}");
            return false;
        }
    };
    println!("{head} {comparison}");
    if !args.is_brief {
        comparison.wrong.iter().for_each(|wrong| println!("    {wrong}"));
        comparison.because.iter().for_each(|cause| println!("    unknown: {cause}"));
        comparison.warnings.iter().for_each(|warning| println!("    warning: {warning}"));
    }
    comparison.is_good(scene, way)
}
