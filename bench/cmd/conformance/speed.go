package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/earshot-dev/earshot/bench/proc"
	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/decoder/conformance"
	"github.com/earshot-dev/earshot/core/frame/fixture"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/plugins"
)

// Tolerances of a figure. Allocations are the same in every run, but for maps, whose growth
// depends on a random seed: by less than one in a thousand. Processor time depends on other
// processes, though less as a ratio of two best times of one process: beside other work on both
// cores it is between 0.93 and 1.4 for a decoder whose ratio is 0.95. A decoder is slower when it is in every process.
// It depends on the processor, too: the same letta had 0.54 on an AMD EPYC and 0.69 on an Intel Xeon, so a figure that
// differs by that much is committed between the two.
const (
	moreAllocs = 0.01
	moreTime   = 0.25
)

// Samples of a decoder and of its yardstick alternate, so that both see the same machine. A
// decoder is measured in a process of its own, because the heap that another one left changes
// its time; memory is laid out differently in each process, by up to a tenth of the time.
const (
	sample        = 4 * time.Millisecond // of processor time, at least
	samples       = 12
	mostProcesses = 12 // while the time is beyond the tolerance
	forUpdate     = 4  // processes, of a figure that is to be committed
)

// figure is the speed of a decoder with the cases in its testdata.
type figure struct {
	Cases string `json:"cases"` // a digest of the frames
	// Time is the processor time of decoding the frames, by that of encoding/json for
	// unmarshalling them into an any.
	Time float64 `json:"time"`
	// Allocs is the number of allocations per frame.
	Allocs float64 `json:"allocs"`
}

// speed measures every decoder and prints a table. The error names those that fall behind
// their figures in the file.
func speed(ctx context.Context, folder, file string, update bool) error {
	figures, err := readFigures(file)
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(plugins.Bundled()))
	maps.DeleteFunc(figures, func(name string, _ figure) bool { return !slices.Contains(names, name) })
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\nDECODER\tMB/CPU-s\tTIME\tCOMMITTED\tALLOCS\tCOMMITTED\t")
	least := 1
	if update {
		least = forUpdate
	}
	var slow []error
	for _, name := range names {
		was := figures[name]
		m, err := measureAlone(ctx, name, folder)
		times := []float64{m.figure().Time}
		for n := 1; err == nil && (n < least || n < mostProcesses && was.slower(m.figure())); n++ {
			var again measured
			again, err = measureAlone(ctx, name, folder)
			m, times = m.best(again), append(times, again.figure().Time)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		now := m.figure()
		if err := was.worse(now); err != nil {
			slow = append(slow, fmt.Errorf("%s: %w", name, err))
		}
		figures[name] = was.updated(was.lasting(now, times))
		fmt.Fprintf(w, "%s\t%.0f\t%.2f\t%.2f\t%.2f\t%.2f\t\n", name, m.perSecond(), now.Time, was.Time, now.Allocs, was.Allocs)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Println("\nTIME is processor time by that of encoding/json on the same bytes in the same run, ALLOCS is allocations per frame")
	if update {
		return writeFigures(file, figures)
	}
	if len(slow) > 0 {
		return fmt.Errorf("%w\nmake conformance-update writes the new figures; the commit has the reason", errors.Join(slow...))
	}
	return nil
}

// measured is the outcome of samples on this machine.
type measured struct {
	Cases     string
	Frames    int
	Size      int64   // of all frames, in bytes
	Decode    float64 // seconds of processor time for all frames
	Yardstick float64
	Allocs    float64 // for all frames
}

// best has the best of the values of both, which are of the same frames. Times are compared within a process
// only: the best yardstick may be of a process that had the machine for itself.
func (m measured) best(o measured) measured {
	if o.Decode/o.Yardstick < m.Decode/m.Yardstick {
		m.Decode, m.Yardstick = o.Decode, o.Yardstick
	}
	m.Allocs = min(m.Allocs, o.Allocs)
	return m
}

func (m measured) figure() figure {
	return figure{Cases: m.Cases, Time: round(m.Decode / m.Yardstick), Allocs: round(m.Allocs / float64(m.Frames))}
}

// perSecond is in MB per second of processor time.
func (m measured) perSecond() float64 { return float64(m.Size) / m.Decode / 1e6 }

// measureAlone measures a bundled decoder in a new process of this executable.
func measureAlone(ctx context.Context, name, folder string) (m measured, err error) {
	exe, err := os.Executable()
	if err != nil {
		return m, err
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, exe, measureCommand, name, folder)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return m, fmt.Errorf("measure: %w\n%s", err, stderr.Bytes())
	}
	return m, json.Unmarshal(out, &m)
}

// measureAndPrint is that process.
func measureAndPrint(name, folder string) error {
	cases, err := conformance.Load(os.DirFS(filepath.Join(folder, name, "testdata")))
	if err != nil {
		return err
	}
	m, err := measure(plugins.Bundled()[name](), cases)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(m)
}

// measure takes the samples of a decoder. Garbage is collected between them only.
func measure(f decoder.Factory, cases []conformance.Case) (m measured, err error) {
	w, err := newWork(f, cases)
	if err != nil {
		return m, err
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	decode, err := newStopwatch(w.decode)
	if err != nil {
		return m, err
	}
	yardstick, err := newStopwatch(w.unmarshal)
	if err != nil {
		return m, err
	}
	for range samples {
		if err := decode.sample(); err != nil {
			return m, err
		}
		if err := yardstick.sample(); err != nil {
			return m, err
		}
	}
	return measured{w.digest, w.frames, w.size, decode.best, yardstick.best, decode.allocs}, nil
}

// round rounds to three decimals.
func round(v float64) float64 { return math.Round(v*1000) / 1000 }

// slower reports whether the time of now is beyond the tolerance.
func (f figure) slower(now figure) bool { return f.Time > 0 && now.Time > f.Time*(1+moreTime) }

// worse returns an error for each part of now that falls behind the committed figure.
func (f figure) worse(now figure) error {
	var errs []error
	switch {
	case f.Cases == "":
		return errors.New("it has no committed figure")
	case f.Cases != now.Cases:
		return errors.New("its cases are not those of the committed figure")
	}
	if f.slower(now) {
		errs = append(errs, fmt.Errorf("its processor time is %.2f of encoding/json's, and was %.2f (tolerance %.0f%%)", now.Time, f.Time, moreTime*100))
	}
	if now.Allocs > f.Allocs*(1+moreAllocs) {
		errs = append(errs, fmt.Errorf("it makes %.2f allocations per frame, and made %.2f (tolerance %.0f%%)", now.Allocs, f.Allocs, moreAllocs*100))
	}
	return errors.Join(errs...)
}

// lasting returns the figure with a time that the next run is going to meet: one process in some dozens is faster, or
// its yardstick slower, by a quarter. A lower time is that of the slowest process, a first one the median.
func (f figure) lasting(now figure, times []float64) figure {
	slices.Sort(times)
	switch {
	case f.Cases != now.Cases:
		now.Time = times[len(times)/2]
	case now.Time < f.Time:
		now.Time = min(f.Time, times[len(times)-1])
	}
	return now
}

// updated returns the figure to commit: a value within the tolerance stays, so that a decoder
// does not get slower by less than the tolerance many times.
func (f figure) updated(now figure) figure {
	if f.Cases != now.Cases {
		return now
	}
	if math.Abs(math.Log(now.Time/f.Time)) > math.Log(1+moreTime) {
		f.Time = now.Time
	}
	if math.Abs(now.Allocs-f.Allocs) > f.Allocs*moreAllocs {
		f.Allocs = now.Allocs
	}
	return f
}

// work is the measured work: the frames of all cases.
type work struct {
	factory decoder.Factory
	cases   []conformance.Case
	digest  string
	frames  int
	size    int64
	docs    [][]byte // the frames as JSON documents
	out     decoder.Output
}

func newWork(f decoder.Factory, cases []conformance.Case) (*work, error) {
	w := &work{factory: f, cases: cases}
	var all []byte
	for _, c := range cases {
		all = append(append(all, c.Stream.Origin...), c.Stream.Options...)
		for i := range c.Frames {
			var err error
			if all, err = fixture.AppendFrame(all, &c.Frames[i]); err != nil {
				return nil, err
			}
			data := c.Frames[i].Data
			w.frames++
			w.size += int64(len(data))
			if !json.Valid(data) {
				if data, err = json.Marshal(string(data)); err != nil {
					return nil, err
				}
			}
			w.docs = append(w.docs, data)
		}
	}
	w.digest = msg.HashKey(string(all))
	return w, nil
}

// decode decodes every case with a new decoder, as one batch.
func (w *work) decode() error {
	for i := range w.cases {
		c := &w.cases[i]
		d, err := w.factory.New(c.Stream)
		if err != nil {
			return err
		}
		w.out.Reset()
		for i := range c.Frames {
			w.out.Begin(int32(i))
			if err := d.Decode(&c.Frames[i], &w.out); err != nil {
				return err
			}
		}
		if err := d.Flush(&w.out); err != nil {
			return err
		}
	}
	return nil
}

// unmarshal is the yardstick.
func (w *work) unmarshal() error {
	for _, d := range w.docs {
		var v any
		if err := json.Unmarshal(d, &v); err != nil {
			return err
		}
	}
	return nil
}

// stopwatch keeps the best of samples, each of which repeats a work.
type stopwatch struct {
	work   func() error
	repeat int
	best   float64 // seconds of processor time for one work
	allocs float64 // the fewest of one work
}

func newStopwatch(work func() error) (*stopwatch, error) {
	s := &stopwatch{work: work, best: math.Inf(1), allocs: math.Inf(1)}
	for s.repeat = 1; ; s.repeat *= 2 {
		spent, err := s.run()
		if err != nil || spent >= sample {
			return s, err
		}
	}
}

func (s *stopwatch) sample() error {
	runtime.GC()
	_, err := s.run()
	return err
}

func (s *stopwatch) run() (time.Duration, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := proc.Own()
	for range s.repeat {
		if err := s.work(); err != nil {
			return 0, err
		}
	}
	spent := proc.Own() - start
	runtime.ReadMemStats(&after)
	s.best = min(s.best, spent.Seconds()/float64(s.repeat))
	s.allocs = min(s.allocs, float64(after.Mallocs-before.Mallocs)/float64(s.repeat))
	return spent, nil
}

// readFigures reads the committed figures, by decoder.
func readFigures(file string) (map[string]figure, error) {
	figures := make(map[string]figure)
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return figures, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &figures)
	}
	if err != nil {
		return nil, fmt.Errorf("figures: %w", err)
	}
	return figures, nil
}

// writeFigures writes one line for each decoder.
func writeFigures(file string, figures map[string]figure) error {
	var b bytes.Buffer
	b.WriteString("{")
	for i, name := range slices.Sorted(maps.Keys(figures)) {
		line, err := json.Marshal(figures[name])
		if err != nil {
			return err
		}
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, "\n  %q: %s", name, line)
	}
	b.WriteString("\n}\n")
	return os.WriteFile(file, b.Bytes(), 0o644)
}
