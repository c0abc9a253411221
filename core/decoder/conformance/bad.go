package conformance

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/frame"
)

// badFrames is C10. Each bad frame costs itself and nothing else.
func badFrames(ctx context.Context, r *runner) error {
	if _, ok := addMember(r.like(0).Data, `"x":0`, true); !ok {
		return skipped("the frames are not JSON: the suite does not know how to damage them")
	}
	for _, d := range []struct {
		what   string
		damage func(data []byte) []byte
	}{
		{"truncated JSON", func(data []byte) []byte { return data[:len(data)/2] }},
		{"a NUL byte", func(data []byte) []byte {
			at := bytes.IndexAny(data, "{[") + 1
			return append(append(bytes.Clone(data[:at]), 0), data[at:]...)
		}},
		{"invalid UTF-8", func(data []byte) []byte {
			out, _ := addMember(data, "\"earshot_bad\":\"\xff\xfe\"", true)
			return out
		}},
		{"a number", func([]byte) []byte { return []byte("42") }},
	} {
		frames, added := r.insert(func(_ int, like frame.Frame) frame.Frame {
			like.Data = d.damage(like.Data)
			return like
		})
		got, err := r.play(ctx, r.suite.Subject, r.c.Stream, frames, how{})
		if err != nil {
			return otherRule("D8", err)
		}
		if err := r.oneEach(d.what, got, added); err != nil {
			return err
		}
	}
	if err := wrongTypes(ctx, r); err != nil {
		return err
	}
	return monsters(ctx, r)
}

// wrongTypes: a value of another type than expected, anywhere in a frame, is read
// past, or makes the frame a bad one. What is given in spite of it is valid.
func wrongTypes(ctx context.Context, r *runner) error {
	const rounds = 24
	others := []string{`null`, `true`, `7`, `-1.5e300`, `""`, `"x"`, `[]`, `{}`, `[{}]`, `{"a":[1]}`}
	for range rounds {
		frames := append([]frame.Frame(nil), r.c.Frames...)
		for i := range frames {
			data := frames[i].Data
			all := values(data)
			if len(all) == 0 || r.rand.IntN(3) == 0 {
				continue
			}
			at := all[r.rand.IntN(len(all))]
			frames[i].Data = slices.Concat(data[:at[0]], []byte(others[r.rand.IntN(len(others))]), data[at[1]:])
		}
		got, err := r.play(ctx, r.suite.Subject, r.c.Stream, frames, how{})
		if err != nil {
			return otherRule("D8", err)
		}
		for i := 1; i < len(got.problems); i++ {
			if f := got.problems[i].Frame; f == got.problems[i-1].Frame {
				return &broken{"D8", "a frame with a value of an unexpected type gives two problems", string(frames[f].Data)}
			}
		}
		if err := wellFormed(got); err != nil {
			err.reason = "a value of an unexpected type gives an invalid message: " + err.reason
			return err
		}
	}
	return nil
}

// oneEach checks that each bad frame gave one problem and everything else is as
// it was.
func (r *runner) oneEach(what string, got *run, added map[int]bool) error {
	count := make(map[int]int)
	others := 0
	for _, p := range got.problems {
		if !added[int(p.Frame)] {
			others++
		}
		count[int(p.Frame)]++
	}
	for i := range added {
		if n := count[i]; n != 1 {
			return breaks("D8", "%s: a bad frame gives %d problems, want exactly one", what, n)
		}
	}
	if others != len(r.base.problems) {
		return breaks("D8", "%s: bad frames between the others make %d problems of those, which had %d", what, others, len(r.base.problems))
	}
	return rules{keys: "D5", rest: "D8"}.differ(what+": the stream does not go on as if the bad frames were not there",
		r.base.folded(), got.folded())
}

// monsters: a value of 10 MB, and one that is nested beyond reason, is decoded or
// is one problem. One case is enough.
func monsters(ctx context.Context, r *runner) error {
	for i := range r.suite.Cases {
		other := &runner{c: &r.suite.Cases[i]}
		if _, ok := addMember(other.like(0).Data, `"x":0`, true); ok {
			if other.c != r.c {
				return nil
			}
			break
		}
	}
	const deep = 100_000
	for _, m := range []struct{ what, value string }{
		{"a value of 10 MB", `"` + strings.Repeat("0123456789abcdef", 10<<20/16) + `"`},
		{"a value nested 100,000 deep", strings.Repeat("[", deep) + strings.Repeat("]", deep)},
	} {
		if err := r.monster(ctx, m.what, `"`+extra+`_monster":`+m.value); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) monster(ctx context.Context, what, member string) error {
	frames := append([]frame.Frame(nil), r.c.Frames...)
	var at []int
	for i := range frames {
		if _, ok := addMember(frames[i].Data, `"x":0`, false); ok {
			at = append(at, i)
		}
	}
	i := at[r.rand.IntN(len(at))]
	frames[i].Data, _ = addMember(frames[i].Data, member, false)
	got, err := r.play(ctx, r.suite.Subject, r.c.Stream, frames, how{})
	if err != nil {
		return otherRule("D8", err)
	}
	problems := 0
	for _, p := range got.problems {
		if int(p.Frame) == i {
			problems++
		}
	}
	switch {
	case problems > 1:
		return breaks("D8", "%s gives %d problems, want none or one", what, problems)
	case problems == 1:
		return nil
	}
	return rules{keys: "D5", rest: "D8"}.differ("a field with "+what+" changes the output", withoutNoise(r.base), withoutNoise(got))
}

// otherRule says of a decoder that failed that it broke the rule of the check at
// hand, which forbids to fail.
func otherRule(rule string, err error) error {
	var b *broken
	if errors.As(err, &b) && b.rule == "D9" {
		return &broken{rule, b.reason, b.detail}
	}
	return err
}
