package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/decoder/conformance"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/plugins"
)

// repeated decodes each frame as many times and throws the output of all but the last away.
type repeated struct {
	decoder.Factory
	times int
}

func (r repeated) New(s decoder.Stream) (decoder.Decoder, error) {
	d := &all{}
	for range r.times {
		one, err := r.Factory.New(s)
		if err != nil {
			return nil, err
		}
		d.decoders = append(d.decoders, one)
	}
	return d, nil
}

type all struct {
	decoders []decoder.Decoder
	unused   decoder.Output
}

func (d *all) last() (others []decoder.Decoder, last decoder.Decoder) {
	n := len(d.decoders) - 1
	return d.decoders[:n], d.decoders[n]
}

func (d *all) Decode(f *frame.Frame, out *decoder.Output) error {
	others, last := d.last()
	for _, o := range others {
		d.unused.Reset()
		d.unused.Begin(0)
		if err := o.Decode(f, &d.unused); err != nil {
			return err
		}
	}
	return last.Decode(f, out)
}

func (d *all) Flush(out *decoder.Output) error {
	_, last := d.last()
	return last.Flush(out)
}

// A decoder that does more work falls behind its figure in time and in allocations. It works four times, because beside
// other tests the ratio of one process is up to a half off: one that worked twice once took 1.2 times the time.
func TestSlowerDecoderFallsBehind(t *testing.T) {
	cases, err := conformance.Load(os.DirFS("../../../plugins/openai-chat/testdata"))
	if err != nil {
		t.Fatal(err)
	}
	f := plugins.Bundled()["openai-chat"]()
	first, err := measure(f, cases)
	if err != nil {
		t.Fatal(err)
	}
	slow, err := measure(repeated{f, 4}, cases)
	if err != nil {
		t.Fatal(err)
	}
	err = first.figure().worse(slow.figure())
	if err == nil || !strings.Contains(err.Error(), "processor time") || !strings.Contains(err.Error(), "allocations") {
		t.Errorf("%+v after %+v: %v", slow, first, err)
	}
	if err := slow.figure().worse(slow.best(first).figure()); err != nil {
		t.Errorf("the best of both is worse than one: %v", err)
	}
}

// TestBestOfOneProcess: a yardstick that had the machine for itself is not that of a decoder that had not.
func TestBestOfOneProcess(t *testing.T) {
	busy := measured{Cases: "a", Frames: 1, Decode: 0.95, Yardstick: 1, Allocs: 11}
	quiet := measured{Cases: "a", Frames: 1, Decode: 0.7, Yardstick: 0.5, Allocs: 10}
	for _, got := range []measured{busy.best(quiet), quiet.best(busy)} {
		if want := (figure{Cases: "a", Time: 0.95, Allocs: 10}); got.figure() != want {
			t.Errorf("%+v, want %+v", got.figure(), want)
		}
	}
}

// TestOneFastProcess: the figure to commit is not that of one process among several.
func TestOneFastProcess(t *testing.T) {
	was, now := figure{Cases: "a", Time: 1}, figure{Cases: "a", Time: 0.7}
	if got := was.updated(was.lasting(now, []float64{1.02, 0.7, 0.98})); got.Time != 1 {
		t.Errorf("one fast process makes it %v", got.Time)
	}
	if got := was.updated(was.lasting(now, []float64{0.72, 0.7, 0.71})); got.Time != 0.72 {
		t.Errorf("three make it %v", got.Time)
	}
	if got := was.lasting(figure{Cases: "b", Time: 0.7}, []float64{1.02, 0.7, 0.98}); got.Time != 0.98 {
		t.Errorf("the first figure of cases is %v", got.Time)
	}
	if got := was.lasting(figure{Cases: "a", Time: 1.4}, []float64{1.5, 1.4}); got.Time != 1.4 {
		t.Errorf("a slower one is %v", got.Time)
	}
}

// A figure is compared with the same cases only; an update keeps values within the tolerance.
func TestFigures(t *testing.T) {
	was := figure{Cases: "a", Time: 1, Allocs: 10}
	for _, c := range []struct {
		name    string
		now     figure
		problem string
		updated figure
	}{
		{"the same", was, "", was},
		{"within", figure{Cases: "a", Time: 1 + moreTime - 0.01, Allocs: 10.09}, "", was},
		{"slower", figure{Cases: "a", Time: 2, Allocs: 10}, "processor time is 2.00", figure{Cases: "a", Time: 2, Allocs: 10}},
		{"more", figure{Cases: "a", Time: 1.1, Allocs: 10.2}, "10.20 allocations", figure{Cases: "a", Time: 1, Allocs: 10.2}},
		{"better", figure{Cases: "a", Time: 0.5, Allocs: 9}, "", figure{Cases: "a", Time: 0.5, Allocs: 9}},
		{"other cases", figure{Cases: "b", Time: 1, Allocs: 10}, "its cases are not those", figure{Cases: "b", Time: 1, Allocs: 10}},
	} {
		got := ""
		if err := was.worse(c.now); err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.problem) || got != "" && c.problem == "" {
			t.Errorf("%s: %q, want %q", c.name, got, c.problem)
		}
		if u := was.updated(c.now); u != c.updated {
			t.Errorf("%s is updated to %+v, want %+v", c.name, u, c.updated)
		}
	}
	file := filepath.Join(t.TempDir(), "figures.json")
	if err := writeFigures(file, map[string]figure{"b": was, "a": {Cases: "x", Time: 0.25, Allocs: 3}}); err != nil {
		t.Fatal(err)
	}
	read, err := readFigures(file)
	if err != nil || len(read) != 2 || read["b"] != was {
		t.Errorf("%+v, %v", read, err)
	}
	if err := (figure{}).worse(was); err == nil {
		t.Error("a decoder without a figure passes")
	}
}
