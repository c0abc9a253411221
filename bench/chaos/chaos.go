package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/earshot-dev/earshot/core/freeport"
)

// Options of a run.
type Options struct {
	Bin  string // a directory with earshot and earshot-store
	Dir  string // an empty one
	Seed uint64
	// Duration is the least. The storm goes on until each fault has fired, three times as long at most: a busy machine
	// does less in a second, and a disk that is full for one may see no write.
	Duration time.Duration
	// Away keeps the store stopped for the first half.
	Away bool
	Log  io.Writer
}

// Report is the outcome of a run.
type Report struct {
	Seed                                 uint64
	Lines, Torn                          int
	Bytes                                int64
	Rows, Duplicates, Lost               int
	Letters, LostLetters                 int
	Twins, Records                       int   // of Lines: of the source with equal ids, and over OTLP
	Refused                              error // why the last of these that was not accepted was not
	Unaccounted                          int64
	Secrets                              int // files and rows that have one
	Kills                                map[string]int
	Renames, Copies                      int
	PeakMemory, PeakSpool, LeftOnTheDisk int64
	CaughtUp                             time.Duration
}

// faults are the faults that a run must have fired.
var faults = []string{"sidecar", "decoder", "stopped decoder", "store", "store away", "full disk"}

// unfired are the faults that have not fired.
func (r *Report) unfired() (list []string) {
	for _, f := range faults {
		if r.Kills[f] == 0 {
			list = append(list, f)
		}
	}
	return list
}

// Err returns the faults of the outcome.
func (r *Report) Err() error {
	var all []error
	zero := func(name string, n int64) {
		if n != 0 {
			all = append(all, fmt.Errorf("%d %s", n, name))
		}
	}
	zero("lost", int64(r.Lost))
	zero("twice", int64(r.Duplicates))
	zero("dead letters lost", int64(r.LostLetters))
	zero("bytes unaccounted for", r.Unaccounted)
	zero("files or rows with a secret", int64(r.Secrets))
	zero("bytes left in spools", r.LeftOnTheDisk)
	for _, f := range r.unfired() {
		all = append(all, fmt.Errorf("the fault %q never fired: run it longer", f))
	}
	if r.Renames == 0 || r.Copies == 0 {
		all = append(all, errors.New("no file was replaced: run it longer"))
	}
	if r.Twins == 0 {
		all = append(all, errors.New("the source with equal ids had no traffic: run it longer"))
	}
	if r.Records == 0 {
		all = append(all, fmt.Errorf("nothing was accepted over OTLP: %w", r.Refused))
	}
	return errors.Join(all...)
}

// String formats the report.
func (r *Report) String() string {
	var b strings.Builder
	row := func(name string, v any) { fmt.Fprintf(&b, "%-22s %v\n", name, v) }
	row("seed", r.Seed)
	for _, f := range faults {
		row(f, fmt.Sprint(r.Kills[f], " times"))
	}
	row("files renamed", r.Renames)
	row("files copied, cut", r.Copies)
	row("bytes written", r.Bytes)
	row("rows expected", r.Lines)
	row("of them with equal ids", r.Twins)
	row("of them over OTLP", r.Records)
	row("rows found", r.Rows)
	row("duplicates", r.Duplicates)
	row("lost", r.Lost)
	row("dead letters expected", r.Torn)
	row("dead letters found", r.Letters)
	row("bytes unaccounted for", r.Unaccounted)
	row("secrets found", r.Secrets)
	row("peak memory, MiB", r.PeakMemory>>20)
	row("peak spool, KiB", r.PeakSpool>>10)
	row("caught up in", r.CaughtUp.Round(time.Millisecond))
	return b.String()
}

// run is a run.
type run struct {
	Options
	exe, config string
	storeConfig string
	addr        string
	rng         *rand.Rand
	traffic     traffic
	twins       traffic // of other texts under the same ids
	telemetry   telemetry
	sidecar     *process
	store       *process
	report      Report
	full        bool // the disk
	refusals    int  // refused writes before it was full
}

// Run runs the traffic and the faults, lets the sidecar catch up, and compares the tables.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	r := &run{
		Options: o, exe: filepath.Join(o.Bin, "earshot"), rng: rand.New(rand.NewPCG(o.Seed, 1)),
		config: filepath.Join(o.Dir, "earshot.yaml"), storeConfig: filepath.Join(o.Dir, "store.yaml"),
	}
	r.report = Report{Seed: o.Seed, Kills: make(map[string]int)}
	r.traffic = traffic{dir: filepath.Join(o.Dir, "in"), word: "line", rng: rand.New(rand.NewPCG(o.Seed, 2)), files: 5, written: make(map[string]int64)}
	r.twins = traffic{dir: filepath.Join(o.Dir, "twins"), word: "twin", rng: rand.New(rand.NewPCG(o.Seed, 3)), files: 2, written: make(map[string]int64)}
	if err := r.prepare(); err != nil {
		return nil, err
	}
	defer func() {
		// The store is interrupted: a killed one leaves its engine, which writes into the directory until it notices.
		if r.sidecar != nil {
			r.sidecar.kill()
		}
		if r.store != nil {
			err = errors.Join(err, r.store.interrupt(20*time.Second))
		}
	}()
	if err := r.storm(ctx); err != nil {
		return nil, err
	}
	if err := r.drain(); err != nil {
		return nil, err
	}
	return &r.report, r.countRows()
}

func (r *run) prepare() error {
	addr, err := freeport.Loopback()
	otlp, err2 := freeport.Loopback()
	if err := errors.Join(err, err2, os.MkdirAll(r.traffic.dir, 0o700), os.MkdirAll(r.twins.dir, 0o700)); err != nil {
		return err
	}
	r.addr, r.telemetry.addr = addr, otlp
	source := fmt.Sprintf(`sources:
  - {name: agents, type: file, format: legion, poll_interval: 1s, paths: [%q]}
  - {name: twins, type: file, format: legion, poll_interval: 1s, paths: [%q]}
  - {name: otel, type: otlp, format: otel-genai, grpc: {listen: ""}, http: {listen: %q}}
`, r.traffic.dir+"/*.jsonl*", r.twins.dir+"/*.jsonl*", otlp)
	common := "telemetry: {listen: \"\"}\n"
	return errors.Join(
		os.WriteFile(r.storeConfig, fmt.Appendf(nil, "data_dir: %s\nstore: {listen: %q, writer_token: chaos}\n%s%s", filepath.Join(r.Dir, "store"), r.addr, common, source), 0o600),
		os.WriteFile(r.config, fmt.Appendf(nil, "data_dir: %s\nexporters: {clickhouse: {dsn: \"http://default:chaos@%s/earshot\", compression: none, timeout: 5s}}\ndelivery: {retry_min: 50ms, retry_max: 500ms}\nplugins: {legion: {timeout: 3s}}\n%s%s",
			filepath.Join(r.Dir, "data"), r.addr, common, source), 0o600),
	)
}

func (r *run) startSidecar() (err error) {
	r.sidecar, err = start(r.exe, "run", "-c", r.config)
	return err
}

func (r *run) startStore() (err error) {
	r.store, err = start(r.exe, "store", "-c", r.storeConfig)
	return err
}

// stopStore kills the store and the process that would restart it.
func (r *run) stopStore() {
	r.store.signal("earshot-store", syscall.SIGKILL)
	r.store.kill()
	r.store = nil
}

// storm writes traffic and fires faults until the time is over.
func (r *run) storm(ctx context.Context) error {
	began := time.Now()
	half := began.Add(r.Duration / 2)
	if err := r.startSidecar(); err != nil {
		return err
	}
	if r.Away {
		r.report.Kills["store away"]++
	} else if err := r.startStore(); err != nil {
		return err
	}
	sending, stop := context.WithCancel(ctx)
	sent := make(chan struct{})
	go func() { defer close(sent); r.telemetry.send(sending) }()
	defer func() { stop(); <-sent }()
	write := time.NewTicker(5 * time.Millisecond)
	defer write.Stop()
	next, back, space := began.Add(time.Second), time.Time{}, time.Time{}
	for time.Since(began) < r.Duration || time.Since(began) < 3*r.Duration && (len(r.report.unfired()) > 0 || r.telemetry.records.Load() == 0) { // on a slow machine a sidecar may be killed before it listens
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-write.C:
		}
		if err := r.traffic.step(); err != nil {
			return err
		}
		if r.rng.IntN(4) == 0 {
			if err := r.twins.step(); err != nil {
				return err
			}
		}
		now := time.Now()
		r.measure()
		if r.store == nil && now.After(back) && (!r.Away || now.After(half)) {
			if err := r.startStore(); err != nil {
				return err
			}
		}
		if r.full && now.After(space) {
			r.freeDisk()
		}
		if now.Before(next) {
			continue
		}
		next = now.Add(time.Duration(200+r.rng.IntN(1000)) * time.Millisecond)
		fault := faults[r.rng.IntN(len(faults))]
		fired := false
		switch fault {
		case "sidecar":
			r.freeDisk()
			r.sidecar.kill()
			fired = true
			if err := r.startSidecar(); err != nil {
				return err
			}
		case "decoder":
			fired = r.sidecar.signal("\x00decoder\x00", syscall.SIGKILL)
		case "stopped decoder":
			fired = r.sidecar.signal("\x00decoder\x00", syscall.SIGSTOP)
		case "store":
			fired = r.store != nil && r.store.signal("earshot-store", syscall.SIGKILL)
		case "store away":
			if fired = r.store != nil; fired {
				r.stopStore()
				back = now.Add(time.Duration(500+r.rng.IntN(2500)) * time.Millisecond)
			}
		case "full disk":
			r.freeDisk()
			r.full, r.refusals = r.sidecar.setDiskFull(true), r.sidecar.refusals()
			space = now.Add(time.Duration(200+r.rng.IntN(1500)) * time.Millisecond)
		}
		if fired {
			r.report.Kills[fault]++
			fmt.Fprintf(r.Log, "%6.1fs %s\n", time.Since(began).Seconds(), fault)
		}
	}
	return nil
}

// freeDisk ends a full disk. It counts as fired if a write was refused meanwhile.
func (r *run) freeDisk() {
	if !r.full {
		return
	}
	r.full = false
	r.sidecar.setDiskFull(false)
	if r.sidecar.refusals() > r.refusals {
		r.report.Kills["full disk"]++
	}
}

// measure updates the peaks.
func (r *run) measure() {
	r.report.PeakMemory = max(r.report.PeakMemory, r.sidecar.resident())
	r.report.PeakSpool = max(r.report.PeakSpool, r.spooled())
}

func (r *run) spooled() (n int64) {
	_ = filepath.WalkDir(filepath.Join(r.Dir, "data", "spool"), func(p string, e fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(p, ".spool") {
			if info, err := e.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}

// drain runs the sidecar without faults until it has caught up.
func (r *run) drain() error {
	if r.store == nil {
		if err := r.startStore(); err != nil {
			return err
		}
	}
	r.freeDisk()
	r.sidecar.kill()
	began := time.Now()
	var err error
	if r.sidecar, err = start(r.exe, "run", "-c", r.config, "--until-idle", "3s"); err != nil {
		return err
	}
	if err := r.sidecar.stop(3 * time.Minute); err != nil {
		return fmt.Errorf("it does not catch up: %w\n%s", err, r.sidecar.out.tail())
	}
	r.report.CaughtUp = time.Since(began)
	return nil
}

// countRows compares what was written and sent with the stored rows.
func (r *run) countRows() error {
	p := &r.report
	sources := map[string]int{r.traffic.word: r.traffic.lines, r.twins.word: r.twins.lines, recordWord: int(r.telemetry.records.Load())}
	p.Twins, p.Records, p.Refused = r.twins.lines, int(r.telemetry.records.Load()), r.telemetry.refused
	p.Lines, p.Torn, p.Bytes = r.traffic.lines+p.Twins+p.Records, r.traffic.torn+r.twins.torn, r.traffic.bytes+r.twins.bytes
	p.Renames, p.Copies = r.traffic.Renames+r.twins.Renames, r.traffic.Copies+r.twins.Copies
	p.LeftOnTheDisk = r.spooled()
	rows, err := r.query("SELECT extract(content, '^\\\\w+ \\\\d+'), countSubstrings(content, '" + secret[:20] + "') FROM messages WHERE kind = 'assistant'")
	if err != nil {
		return err
	}
	seen := make(map[string]int)
	for _, row := range rows {
		text, secrets, _ := strings.Cut(row, "\t")
		word, number, _ := strings.Cut(text, " ")
		n, err := strconv.Atoi(number)
		unanswered := word == recordWord && n == p.Records
		if err != nil || n >= sources[word] && !unanswered {
			return fmt.Errorf("a row of nothing that was written: %q", row)
		}
		if unanswered {
			p.Lines++
		}
		if seen[text]++; seen[text] > 1 {
			p.Duplicates++
		}
		if secrets != "0" {
			p.Secrets++
		}
	}
	p.Rows = len(rows)
	for word, lines := range sources {
		for n := range lines {
			if text := fmt.Sprint(word, " ", n); seen[text] == 0 {
				if p.Lost++; p.Lost <= 5 {
					fmt.Fprintf(r.Log, "lost: %s\n", text)
				}
			}
		}
	}
	letters, err := r.query("SELECT source, payload FROM dead_letters FINAL WHERE stage = 'decode' AND reason = 'invalid_json'")
	if err != nil {
		return err
	}
	for source, t := range map[string]*traffic{"agents": &r.traffic, "twins": &r.twins} {
		for n := range t.torn {
			if slices.Contains(letters, fmt.Sprintf("%s\t{\"torn\":%d", source, n)) {
				p.Letters++
			} else {
				p.LostLetters++
			}
		}
	}
	files, err := filesWith(filepath.Join(r.Dir, "data"), secret[:20])
	if err != nil {
		return err
	}
	p.Secrets += len(files)
	for _, f := range files {
		fmt.Fprintf(r.Log, "a secret in %s\n", f)
	}
	sum, err := r.query("SELECT sum(abs(unaccounted_bytes)) FROM source_ledger")
	if err != nil {
		return err
	}
	_, err = fmt.Sscan(sum[0], &p.Unaccounted)
	return err
}

// filesWith are the files below a directory that have a text in their bytes.
func filesWith(dir, text string) (found []string, err error) {
	err = filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(p)
		if strings.Contains(string(b), text) {
			found = append(found, p)
		}
		return err
	})
	return found, err
}
