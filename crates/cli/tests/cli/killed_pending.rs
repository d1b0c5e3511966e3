//! `kill -9` while revisions wait for their confirmation, and files change in between, against a model.
//!
//! A slice here; `make kill` has all of it (`TAMIS_KILLS=1000`).

use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use live::{Request, ask};
use serde_json::Value;

use crate::killed::times;
use crate::ran::Scratch;
use crate::started::started;

/// Rules that tell their number.
fn rules(number: u64) -> String {
    format!("*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -m comment --comment r{number}\nCOMMIT\n")
}

/// The rules of IPv4: a rule that stays, and a rule that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rules {
    stay: u64,
    wait: Option<u64>,
}

/// What a client may ask.
#[derive(Debug, Clone, Copy)]
enum Asked {
    /// Applies rules that wait `seconds` for their confirmation.
    Apply(u64, u64),
    Confirm,
    Rollback,
}

impl Asked {
    fn request(self) -> Request {
        match self {
            Self::Apply(number, seconds) => Request::Apply {
                text: rules(number),
                name: String::new(),
                family: Some("ip".to_owned()),
                noflush: false,
                if_rev: None,
                dry_run: false,
                confirm: Some(seconds),
            },
            Self::Confirm => Request::Confirm {},
            Self::Rollback => Request::Rollback { revision: None },
        }
    }

    /// What it makes of rules.
    fn on(self, Rules { stay, wait }: Rules) -> Rules {
        match self {
            Self::Apply(number, _) => Rules { stay, wait: Some(number) },
            Self::Confirm => Rules { stay: wait.unwrap_or(stay), wait: None },
            Self::Rollback => Rules { stay, wait: None },
        }
    }
}

/// What was acknowledged, and what was asked for since.
#[derive(Debug)]
struct Model {
    rules: Rules,
    asked: Option<Asked>,
    last: u64,
    /// What waits does so for a second.
    is_short: bool,
}

struct Draw(u64);

impl Draw {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % most
    }
}

/// Sends requests until the run has ended, or only until something waits; the model takes what the run acknowledged.
fn asking(socket: &Path, model: &Mutex<Model>, draw: &mut Draw, until_one_waits: bool) {
    loop {
        let (asked, before) = {
            let mut model = model.lock().unwrap();
            if model.rules.wait.is_none() {
                model.last += 1;
                model.is_short = draw.below(12) == 0 && !until_one_waits;
            }
            let asked = match model.rules.wait {
                None => Asked::Apply(model.last, if model.is_short { 1 } else { 3600 }),
                Some(_) if draw.below(2) == 0 => Asked::Confirm,
                Some(_) => Asked::Rollback,
            };
            model.asked = Some(asked);
            (asked, model.rules)
        };
        let Ok(answer) = ask(socket, &asked.request()) else { return };
        let mut model = model.lock().unwrap();
        model.asked = None;
        match answer {
            Ok(_) => model.rules = asked.on(before),
            // It was rolled back by itself meanwhile.
            Err(refused) => {
                assert!(model.is_short && refused.what.contains("waits"), "{refused:?}");
                model.rules.wait = None;
            }
        }
        if until_one_waits && model.rules.wait.is_some() {
            return;
        }
        drop(model);
        // Now and then it is killed while something waits.
        std::thread::sleep(Duration::from_micros(draw.below(30_000)));
    }
}

/// The numbers of the rules in force, of IPv4 and IPv6, and whether they wait.
fn found(socket: &Path) -> (u64, u64, bool) {
    let asked = |request| ask(socket, &request).unwrap().unwrap();
    let (log, get) = loop {
        let both = (asked(Request::Log {}), asked(Request::Get { revision: None }));
        // A rollback may have come between the two.
        if both.0["revision"] == both.1["revision"] {
            break both;
        }
    };
    let text = get["text"].as_str().unwrap();
    let number = |part: &str| part.split_whitespace().next().unwrap().parse().unwrap();
    let numbers: Vec<u64> = text.split("--comment r").skip(1).map(number).collect();
    let waits = log["goes_back_in"] != Value::Null;
    (numbers[0], numbers[1], waits)
}

/// Whether these are in force now; rules that wait for a second may go back at any moment.
fn holds(rules: Rules, (number, _, waits): (u64, u64, bool)) -> bool {
    match rules.wait {
        Some(wait) => waits && number == wait,
        None => !waits && number == rules.stay,
    }
}

/// The states that a model may have after a crash: with what was acknowledged, or also with the last request.
fn after(model: &Model, found: (u64, u64, bool)) -> Rules {
    let both = [Some(model.rules), model.asked.map(|asked| asked.on(model.rules))];
    let gone_back = |rules: Rules| Rules { wait: None, ..rules };
    let short = both.map(|rules| rules.filter(|_| model.is_short).map(gone_back));
    let mut all = both.into_iter().chain(short).flatten();
    all.find(|rules| holds(*rules, found)).unwrap_or_else(|| panic!("{model:?}, found {found:?}"))
}

#[test]
fn confirmations_outlast_kills_and_files_that_change() {
    let folder = Scratch::new("killed-pending");
    folder.write("rules.v4", rules(1));
    folder.write("rules.v6", rules(1));
    let config = folder.write(
        "live.toml",
        "[[port]]\nname = \"left\"\nkind = \"loopback\"\n[[port]]\nname = \"right\"\nkind = \"loopback\"\n\
         [[wire]]\nports = [\"left\", \"right\"]\n[rules]\nip = \"rules.v4\"\nip6 = \"rules.v6\"\n\
         [control]\nsocket = \"c\"\njournal = \"journal\"\n",
    );
    let socket = folder.path().join("c");
    let rules_of_first = Rules { stay: 1, wait: None };
    let model = Mutex::new(Model { rules: rules_of_first, asked: None, last: 1, is_short: false });
    let (mut draw, mut v6, mut waited, mut changed) = (Draw(0x9e37_79b9_7f4a_7c15), 1, 0, 0);
    for round in 0..times(12) {
        let run = started(&config);
        {
            let mut model = model.lock().unwrap();
            let now = found(&socket);
            model.rules = after(&model, now);
            model.asked = None;
            assert_eq!(now.1, v6, "the file of a family that does not wait is in force");
            waited += u64::from(model.rules.wait.is_some());
            if model.is_short && model.rules.wait.take().is_some() {
                let end = Instant::now() + Duration::from_secs(5);
                while found(&socket).2 {
                    assert!(Instant::now() < end, "{model:?} never goes back");
                }
                assert_eq!(found(&socket), (model.rules.stay, v6, false), "{model:?}");
            }
        }
        std::thread::scope(|scope| {
            let time = Duration::from_micros(draw.below(60_000));
            // However slow the machine is, something waits over the first kill.
            let asking = scope.spawn(|| asking(&socket, &model, &mut draw, round == 0));
            match round {
                0 => asking.join().unwrap(),
                _ => std::thread::sleep(time),
            }
            run.kill();
        });
        if draw.below(2) == 0 {
            v6 += 1;
            folder.write("rules.v6", rules(v6));
        }
        if draw.below(6) == 0 {
            let mut model = model.lock().unwrap();
            model.last += 1;
            let number = model.last;
            folder.write("rules.v4", rules(number));
            // Whatever is asked for was asked before: it is what a rollback restores, or in force.
            let asked = model.asked.take();
            let now = asked.map(|asked| asked.on(model.rules));
            changed += 1;
            model.rules.stay = number;
            // An unacknowledged change is recognized by whether anything waits.
            if let Some(now) = now {
                model.asked = Some(match now.wait {
                    Some(wait) => Asked::Apply(wait, 0),
                    None => Asked::Rollback,
                });
            }
        }
    }
    let revisions = model.lock().unwrap().last;
    assert!(revisions > 1 && waited > 0, "nothing was changed, or nothing waited");
    eprintln!(
        "{revisions} revisions; {waited} waited over a kill; {changed} times their own file changed"
    );
}
