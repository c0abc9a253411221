package conformance

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/frame/fixture"
)

// recut is C2. The output depends neither on how the network splits the bytes nor on how
// the sender splits a text.
func recut(ctx context.Context, r *runner) error {
	// Every transport splits bytes into frames in the host, so one subject is enough.
	_, local := r.suite.Subject.(*Local)
	cutBytes := local && r.c.transport != fixture.Frames
	if cutBytes {
		if err := r.recutBytes(); err != nil {
			return err
		}
	}
	switch {
	case len(r.c.Deltas) > 0:
	case cutBytes:
		return nil
	default:
		return skipped("the case has no deltas.json, and its bytes are not cut by the decoder")
	}
	found := false
	for _, f := range r.c.Frames {
		if _, ok := findDelta(f.Data, r.c.Deltas); ok {
			found = true
		}
	}
	if !found {
		return violates("D5", "deltas.json: no frame has a string at any of %v", r.c.Deltas)
	}
	always := func() bool { return true }
	never := func() bool { return false }
	perhaps := func() bool { return r.rand.IntN(2) == 0 }
	for _, p := range []struct {
		change      string
		join, split func() bool
	}{
		{"joined", always, never}, {"cut in two", never, always}, {"cut at random", perhaps, perhaps}, {"cut at random", perhaps, perhaps},
	} {
		other, err := r.play(ctx, r.suite.Subject, r.c.Stream, r.recutDeltas(p.join, p.split), playOptions{})
		if err != nil {
			return err
		}
		reason := "the output changes when deltas are " + p.change
		if err := (rules{"D5", "D5"}).differ(reason, r.base.folded(), other.folded()); err != nil {
			return err
		}
	}
	return nil
}

// recutBytes compares the frames when the input is cut in two at every byte, if it is
// short, and in many pieces at random.
func (r *runner) recutBytes() error {
	var cuts [][]int
	if len(r.c.raw) <= 2<<10 {
		for i := range len(r.c.raw) {
			cuts = append(cuts, []int{i})
		}
	}
	for range 16 {
		var k []int
		for at := 0; at < len(r.c.raw); at += 1 + r.rand.IntN(1+r.rand.IntN(1+len(r.c.raw)/2)) {
			k = append(k, at)
		}
		cuts = append(cuts, k)
	}
	for _, k := range cuts {
		got, err := fixture.Read(r.c.transport, pieces(r.c.raw, k)...)
		if err != nil {
			return err
		}
		same := func(a, b frame.Frame) bool {
			x, y := a, b
			x.Data, y.Data = nil, nil
			return bytes.Equal(a.Data, b.Data) && fmt.Sprint(x) == fmt.Sprint(y)
		}
		if !slices.EqualFunc(got, r.c.Frames, same) {
			return violates("D5", "the frames change when the bytes are cut at %v", k)
		}
	}
	return nil
}

func pieces(raw []byte, cuts []int) [][]byte {
	var out [][]byte
	from := 0
	for _, to := range append(cuts[:len(cuts):len(cuts)], len(raw)) {
		out = append(out, raw[from:to])
		from = to
	}
	return out
}

// recutDeltas joins neighbouring deltas and cuts deltas in two.
func (r *runner) recutDeltas(join, split func() bool) []frame.Frame {
	var out []frame.Frame
	var last *delta // of the last frame of out
	numbers := newNumbers(r.c.Deltas)
	for _, f := range r.c.Frames {
		var again bool
		f.Data, again = numbers.next(f.Data)
		d, ok := findDelta(f.Data, r.c.Deltas)
		if !ok || again {
			out, last = append(out, f), nil
			continue
		}
		if last != nil && out[len(out)-1].Name == f.Name && out[len(out)-1].Kind == f.Kind &&
			bytes.Equal(last.before, d.before) && bytes.Equal(last.after, d.after) && join() {
			last.text += d.text
			out[len(out)-1].Data = last.with(last.text)
			continue
		}
		last = &d
		if n := utf8.RuneCountInString(d.text); n > 1 && split() {
			at := len(string([]rune(d.text)[:1+r.rand.IntN(n-1)]))
			head := f
			head.Data = d.with(d.text[:at])
			out = append(out, head)
			d.text = d.text[at:]
			f.Data = numbers.cut(d.with(d.text))
		}
		out = append(out, f)
	}
	return out
}
