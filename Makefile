# Two commands matter: `make run` and `make test`. `make` alone lists all of them.

# Every system package that a test calls, in one place. Debian names.
PACKAGES := iptables arptables ebtables nftables ipset iproute2 tcpdump tar xz-utils chromium \
	conntrack curl dnsmasq-base bind9-dnsutils iputils-ping miniupnpd-nftables etcd-server socat python3 ethtool pkg-config libdpdk-dev \
	openjdk-17-jdk-headless maven patch valgrind binutils
# What the scenes of `make lab`, `tamis-bench tunnel` and `make tunnel-netem` run besides.
LAB_PACKAGES := nginx-light vsftpd tftpd-hpa iperf3 nmap hping3 traceroute radvd udhcpc python3-scapy ufw perl \
	libusrsctp-examples iputils-arping openssh-server openssh-client wireguard-tools haproxy openvpn wireshark-common

# Those of them that are not installed; all of them where there is no dpkg to ask.
lacking = $(shell for p in $(1); do \
	dpkg-query -W -f '$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || echo $$p; done)
MISSING = $(call lacking,$(PACKAGES))
ROOT = $(filter 0,$(shell id -u))

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 10 | sed 's/^/make /'

# The demo's tamis: all that works offline, built soon rather than fast.
QUICK := cargo build --profile quick --package tamis --no-default-features

run: ## Build tamis as far as it works offline, and show its demo report; the files go to target/demo
	@test -e target/quick/tamis || echo "make run: builds target/quick/tamis, one to two minutes on two cores at first"
	$(QUICK)
	@rm -rf target/demo && mkdir -p target/demo
	@target/quick/tamis demo --dir target/demo

test: $(if $(ROOT),deps) ## Run every test that this machine can run, and say which it skips
	@$(MAKE) --no-print-directory skips
	cargo test --workspace --no-fail-fast

# What .ci/run runs besides: each builds crates anew, or another language.
test-long: ## The tests that make test leaves out: loom, histories, mutants of the engines, Java
	@$(MAKE) --no-print-directory loom histories java-test
	@$(MAKE) --no-print-directory mutants MUTANTS="tamis matrix cached"

# What `cargo test` will skip here. The tests find out by themselves; cargo hides what a passing test says.
skips:
	@test -n "$(ROOT)" || echo "skips: not root, so nothing is compared with the kernel"
	@test -z "$(MISSING)" || echo "skips: tests that call a tool of $(MISSING), not installed (make deps, as root)"
	@command -v mdbook >/dev/null || echo "skips: the book is not built, only its links are checked (cargo install --locked mdbook)"
	@test -d ../shared/data || echo "skips: no ../shared/data, so no rulesets and captures from the wild"

MAVEN := mvn --quiet --batch-mode

java: ## Build the Java library with its native part, test it, and install it for Maven (JDK 17; JDK25=DIR adds FFM)
	cargo build --release -p tamis-java
	$(MAVEN) --file bindings/java install -Dtamis.target=$(CURDIR)/target/release \
		$(if $(JDK25),-Pffm -Djdk25.home=$(JDK25))
	$(MAVEN) --file bindings/java/examples verify -Dtamis.target=$(CURDIR)/target/release

java-quick-start: java ## Try the quick start of docs/java.md from an empty folder (JDK21=DIR JDK25=DIR: on these, too)
	bindings/java/quick-start/try.sh $(JDK21) $(JDK25)

java-bench: ## Build the benchmark of Java, for tamis-bench java (JDK25=DIR adds java.lang.foreign)
	cargo build --release -p tamis-lab -p tamis-java-bench --bin tamis-bench --lib
	$(MAVEN) --file bindings/java/bench package $(if $(JDK25),-Djdk25.home=$(JDK25))

java-handlers: java-bench ## A handler in Java beside the same in Rust, between devices of DPDK (root, libdpdk-dev)
	cargo build --release -p tamis -p tamis-lab --bin tamis --bin tamis-bench --example mac_swap
	cargo build --release -p tamis-java --features dpdk
	target/release/tamis-bench live --only handlers

# Maven fetches its plugins where it has not got them yet.
java-test:
	@command -v mvn >/dev/null || { echo "skips: Java, as there is no mvn (make deps, as root)"; exit 0; }; \
	$(MAVEN) --file bindings/java dependency:resolve-plugins dependency:resolve >/dev/null 2>&1 || \
		{ echo "skips: Java, as Maven cannot fetch its plugins"; exit 0; }; \
	cargo build -p tamis-java && $(MAVEN) --file bindings/java test

page-check: ## The pages in a browser: accessibility, keys, print, 200,000 rules; that of a directory (npm, Chromium)
	@command -v npm >/dev/null || { echo "SKIPPED: the pages were not checked, for want of npm (Debian: npm)"; exit 0; }; \
	cargo build --bin tamis && cargo test -p tamis-cloud --bin tamis-cloud --no-run && \
		cd crates/replay/tests/page && npm ci --silent --no-audit --no-fund && \
		node check.mjs $(CURDIR)/target/debug/tamis && \
		node cloud.mjs cargo test --quiet -p tamis-cloud --bin tamis-cloud -- --ignored --nocapture an_example_for_a_browser

# Being offline is no reason not to test: what stays missing is skipped.
deps: ## Install the system packages that tests call (Debian, as root); only those that are missing
	@test -z "$(MISSING)" || { echo "apt-get install $(MISSING)" && apt-get -qq update && \
		DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends $(MISSING) >/dev/null; \
	} || echo "make deps: could not install $(MISSING)"

# Other crates' code is another under --cfg loom, so it is built in a place of its own.
loom: ## Explore every interleaving of small programs on what threads share
	cargo test -p tamis-dataplane --test loom
	RUSTFLAGS='--cfg loom' CARGO_TARGET_DIR=target/loom cargo test -p tamis-lab-engines interleavings
	RUSTFLAGS='--cfg loom --cfg orders' CARGO_TARGET_DIR=target/orders cargo test -p tamis-lab-engines --test orders

# Histories of each engine and number of threads.
HISTORIES ?= 1000

# As with loom, in a place of its own; optimised, so that what an operation does is not drowned in the recording.
histories: ## Record histories of every engine that threads share: they overlap, and have an order (HISTORIES=N)
	RUSTFLAGS='--cfg pauses' CARGO_TARGET_DIR=target/pauses TAMIS_HISTORIES=$(HISTORIES) \
		cargo test --release -p tamis-lab-engines -- histories_overlap progress_of --nocapture

mutants: ## Break the code on purpose, in each of the ways of crates/lab/mutants, and have a test tell (MUTANTS="tamis matrix")
	crates/lab/mutants/run.sh $(MUTANTS)

# Counts that no load changes; ceilings only go down (CONTRIBUTING.md).
costs: $(if $(ROOT),deps) ## Instructions a packet, memory, size and crates, held to .ci/costs/ceilings.txt (LOWER=1 lowers what may be)
	@python3 -B .ci/costs/tests.py -q
	@python3 -B .ci/costs $(if $(LOWER),--lower)

kill: ## Kill a run 1,000 times in a stream of applies, and fill its disk 100 times (minutes)
	TAMIS_KILLS=1000 cargo test -p tamis --test cli killed

golden: ## Compare all 32 workload streams, and what the model makes of them, with the recorded ones (minutes)
	cargo build --release --bin tamis-bench
	for variant in A B C D; do for preset in 1 2 3 4 5 6 7 8; do for default in deny accept; do \
		target/release/tamis-bench workload --variant $$variant --preset $$preset --hash --oracle \
			--default $$default || exit 1; done; done; done

# Packages that only the lab needs. (So is parking_lot, but for an older one that crossterm brings.)
STUDIES := tamis-lab|tamis-lab-engines|plotters|rayon|papaya

lint: ## Formatting, clippy and rustdoc, each without a warning; modules in circles; links of the book; turns of phrase; what tamis links and depends on
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo clippy -p tamis -p tamis-commands --no-default-features -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps
	cargo run --quiet -p tamis-modules
	cargo run --quiet -p tamis-pages
	@python3 -B .ci/prose
	@! cargo tree -p tamis -e normal --prefix none | grep -E '^($(STUDIES)) ' || \
		{ echo "lint: tamis links what only the lab needs"; exit 1; }
	@$(MAKE) --no-print-directory supply

book: ## Build the book of docs/ into target/book (mdBook; its links are checked first)
	@cargo run --quiet -p tamis-pages
	@command -v mdbook >/dev/null || { echo "book: no mdbook; get it by: cargo install --locked mdbook"; exit 1; }
	mdbook build
	@echo "book: target/book/index.html"

supply: ## Sources, licences and known advisories of every dependency, by deny.toml, without a network
	@cargo run --quiet -p tamis-supply

licences: ## List the licences of dependencies anew (after a lock file has changed)
	cargo run --quiet -p tamis-supply licences

advisories: ## Take a new snapshot of the RustSec advisory database (DB=its clone)
	cargo run --quiet -p tamis-supply advisories $(DB)

# A target of rustc for `make dist`; unless told that of musl, where it can be.
DIST_TARGET ?=

dist: ## A program for others in target/dist: archive, deb, container file, SBOM, checksums (DIST_TARGET=TRIPLE)
	packaging/dist.sh $(DIST_TARGET)

dist-try: ## Install that deb in a new Debian 12 root and try it there (root, debootstrap; after make dist)
	packaging/try.sh

package: ## Pack every crate that ships into target/package
	cargo package --workspace --exclude tamis-lab --exclude tamis-lab-engines --exclude tamis-modules \
		--exclude tamis-pages --exclude tamis-supply --exclude tamis-costs --exclude tamis-java-bench --no-verify

# Packets for each family in `make oracle`, and seconds for each target in `make fuzz`.
PACKETS ?= 2000000
SECONDS_EACH ?= 600
# Rulesets of the wild, which `make oracle` compares too where they are.
RULESETS ?= ../shared/data/rulesets

oracle: $(if $(ROOT),deps) ## Compare tamis with this machine's kernel over millions of packets (root; PACKETS=N)
	cargo run --quiet --release -p tamis-lab --bin oracle -- --packets $(PACKETS) --seed 1 \
		--conformance docs/conformance.md $(if $(wildcard $(RULESETS)),--real $(RULESETS))
	cargo run --quiet --release -p tamis-lab --bin oracle -- --state $(PACKETS) --seed 1 \
		$(if $(wildcard $(RULESETS)),--real $(RULESETS))
	cargo run --quiet --release -p tamis-lab --bin oracle -- nft --packets $(PACKETS) --seed 1

# A command that runs another one under another kernel than this machine's, with this machine's files.
RUNNER ?=
# Packets for each family in `make oracle-other`.
OTHER_PACKETS ?= 200000
# `nft` compares rulesets of nft, else those of iptables and ebtables.
OTHER_RULES ?=

oracle-other: ## Compare tamis with another kernel (RUNNER=COMMAND that runs one under it, root there; OTHER_PACKETS=N, OTHER_RULES=nft)
	@test -n "$(RUNNER)" || { echo "oracle-other: expected RUNNER=COMMAND, which runs another command"; exit 2; }
	cargo build -p tamis-lab --bin oracle
	$(RUNNER) $(CURDIR)/crates/lab/other-kernel.sh $(CURDIR)/target/debug/oracle $(OTHER_PACKETS) $(OTHER_RULES)

# Scenes of real programs for `make lab`; all of them unless told.
SCENES ?=

lab: $(if $(ROOT),lab-deps) ## Real programs through this machine's kernel, their captures replayed (root; SCENES=…)
	cargo build --release --bin tamis
	cargo run --quiet --release -p tamis-lab --bin programs -- $(SCENES)

# Rulesets of the wild that `make series` plays; all that it knows unless told.
SETTINGS ?=

series: $(if $(ROOT),lab-deps) ## Real programs through tamis and this machine's kernel in series (root; SETTINGS="--backend af_xdp …")
	cargo build --release --bin tamis
	cargo run --quiet --release -p tamis-lab --bin series -- --rulesets $(RULESETS) $(SETTINGS)

# Frames of `make soak-live`.
FRAMES ?= 50000000

soak-live: ## Millions of frames through faults and flapping links: memory stays flat (root; FRAMES=N)
	cargo build --release --bin tamis --bin tamis-bench
	target/release/tamis-bench live --soak $(FRAMES)

TUNNEL_PACKETS ?= 100000000

classbench: ## ClassBench's sets: rules that are looked up against rules as they were read, 20,000 headers each (minutes)
	cargo test --release -p tamis-replay --test replay classbench -- --include-ignored --nocapture

tunnel-order: ## Packets through a tunnel by many workers: none is lost, repeated or out of order (TUNNEL_PACKETS=N)
	TAMIS_TUNNEL_PACKETS=$(TUNNEL_PACKETS) cargo test --release -p tamis-live --lib \
		of_very_many -- --ignored

# Packets of `make soak`, without connections and in conversations, and plays of the lab after them.
SOAK_PACKETS ?= 1000000000
SOAK_CONVERSED ?= 10000000
SOAK_PLAYS ?= 10

soak: $(if $(ROOT),lab-deps) ## Compare tamis with this machine's kernel for hours, seed after seed (root; SOAK_PACKETS=N SOAK_CONVERSED=N SOAK_PLAYS=N)
	cargo build --release -p tamis -p tamis-lab --bin tamis --bin oracle --bin programs
	crates/lab/soak.sh $(SOAK_PACKETS) $(SOAK_CONVERSED) $(SOAK_PLAYS)

nat-matrix: ## Two nodes behind each two kinds of routers, in namespaces, held to a list (root; NAT_TIMES=N, NAT_KIND=WORD)
	cargo build -p tamis -p tamis-cloud
	TAMIS_NAT_TIMES=$(or $(NAT_TIMES),1) $(if $(NAT_KIND),TAMIS_NAT_KIND=$(NAT_KIND)) \
		cargo test -p tamis-cloud --test cloud every_pair_of_routers -- --ignored --nocapture

overlay-day: ## A day of 50 nodes of an overlay in simulated time: nobody stuck, every packet counted, no leak (DAY_SEED=N DAY_NODES=N DAY_SECONDS=N)
	$(if $(DAY_SEED),TAMIS_DAY_SEED=$(DAY_SEED)) TAMIS_DAY_NODES=$(or $(DAY_NODES),50) \
		TAMIS_DAY_SECONDS=$(or $(DAY_SECONDS),86400) \
		cargo test -p tamis-overlay --test overlay a_day_of_many_nodes -- --ignored --nocapture

# RUNNER: where a kernel has netem and WireGuard, if this machine's has not.
tunnel-netem: $(if $(ROOT),lab-deps) ## A tunnel on bad paths, beside the kernel's WireGuard (root, netem; RUNNER=COMMAND runs it elsewhere)
	cargo test -p tamis --test cli $(if $(RUNNER),--config 'target."cfg(unix)".runner = "$(RUNNER)"') \
		-- --ignored --nocapture --test-threads 1 tunnel::impaired

lab-deps: PACKAGES := $(filter-out chromium,$(PACKAGES)) $(LAB_PACKAGES)
lab-deps: deps

# The picture of the page in the book: README's review, in a window as wide as a small screen.
picture: ## Redraw docs/review.png (needs Chromium)
	cargo build --release --bin tamis
	docs/picture.sh target/release/tamis docs/review.png

cloud-picture: ## Redraw docs/cloud-page.png, the page of a directory (root, Chromium)
	cargo build -p tamis -p tamis-cloud
	docs/cloud-page.sh target/debug/tamis target/debug/tamis-cloud docs/cloud-page.png

screen: ## Redraw docs/top.svg, the picture of tamis top (root)
	cargo build --release --bin tamis
	docs/top.sh target/release/tamis docs/top.svg

# What figures of the studies are drawn from. `MEASURE=1` measures it anew before (hours on two cores).
MEASURE ?=

figures: ## Redraw docs/figures from what was measured (MEASURE=1 measures it anew first: hours)
	@test -z "$(MEASURE)" || docs/figures/measure.sh
	cargo run --quiet -p tamis-lab --bin tamis-bench -- figures docs/figures/*.json --dir docs/figures

# Of `make campaign`.
CAMPAIGN_SECONDS ?= 600
CAMPAIGN_SEED ?= 1

campaign: ## Drawn rules, captures and options through the binary: no crash, all ways to replay agree (CAMPAIGN_SECONDS=N CAMPAIGN_SEED=N)
	cargo build --release --bin tamis
	cargo run --quiet --release -p tamis-lab --bin campaign -- --seconds $(CAMPAIGN_SECONDS) --seed $(CAMPAIGN_SEED)

# What both of these draw by.
SEED ?= 1

lint-campaign: PACKETS := 1000000
lint-campaign: ## Every finding of lint in rulesets of the wild, held to packets aimed at it (PACKETS=N for each, SEED=N)
	cargo run --quiet --release -p tamis-lab --bin campaign -- \
		lint --packets $(PACKETS) --seed $(SEED) --rulesets $(RULESETS)

diff-campaign: PACKETS := 10000000
diff-campaign: ## What diff says of drawn edits of rulesets of the wild, held to packets aimed at them (PACKETS=N in all, SEED=N)
	cargo run --quiet --release -p tamis-lab --bin campaign -- \
		diff --packets $(PACKETS) --seed $(SEED) --rulesets $(RULESETS)

fuzz: ## Fuzz every reader of input (SECONDS_EACH=N)
	SECONDS_EACH=$(SECONDS_EACH) fuzz/run.sh

.PHONY: help run test test-long costs campaign lint-campaign diff-campaign soak histories mutants classbench tunnel-order kill skips deps java java-quick-start java-bench java-handlers java-test lint book package oracle oracle-other lab lab-deps series soak-live picture screen loom golden fuzz tunnel-netem nat-matrix overlay-day supply licences advisories figures dist dist-try page-check cloud-picture
