package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/frame"
)

// badFrames is C10. A bad frame does not affect the other frames.
func badFrames(ctx context.Context, r *runner) error {
	if _, ok := addMember(r.like(0).Data, `"x":0`, true); !ok {
		return skipped("the frames are not JSON: the suite does not know how to damage them")
	}
	for _, d := range []struct {
		name   string
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
		got, err := r.play(ctx, r.suite.Subject, r.c.Stream, frames, playOptions{})
		if err != nil {
			return withRule("D8", err)
		}
		if err := r.oneProblemEach(d.name, got, added); err != nil {
			return err
		}
	}
	if err := wrongTypes(ctx, r); err != nil {
		return err
	}
	return hugeValues(ctx, r)
}

// wrongTypes checks values of another type than expected, anywhere in a frame. The
// decoder ignores such a value or reports the frame as bad; all its messages are valid.
func wrongTypes(ctx context.Context, r *runner) error {
	const rounds = 24
	others := []string{`null`, `true`, `7`, `-1.5e300`, `""`, `"x"`, `[]`, `{}`, `[{}]`, `{"a":[1]}`}
	for range r.times(rounds) {
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
		got, err := r.play(ctx, r.suite.Subject, r.c.Stream, frames, playOptions{})
		if err != nil {
			return withRule("D8", err)
		}
		for i := 1; i < len(got.problems); i++ {
			if f := got.problems[i].Frame; f == got.problems[i-1].Frame {
				return &violation{"D8", "a frame with a value of an unexpected type has two problems", string(frames[f].Data)}
			}
		}
		if err := wellFormed(got); err != nil {
			err.reason = "a value of an unexpected type leads to an invalid message: " + err.reason
			err.detail = r.alone(ctx, frames) + err.detail
			return err
		}
	}
	return nil
}

// alone returns the first of the changed frames that leads to an invalid message without the other changes.
func (r *runner) alone(ctx context.Context, changed []frame.Frame) string {
	for i := range changed {
		if bytes.Equal(changed[i].Data, r.c.Frames[i].Data) {
			continue
		}
		frames := slices.Clone(r.c.Frames)
		frames[i] = changed[i]
		if got, err := r.play(ctx, r.suite.Subject, r.c.Stream, frames, playOptions{}); err != nil || wellFormed(got) != nil {
			return fmt.Sprintf("frame %d, changed to\n%s\n", i, changed[i].Data)
		}
	}
	return ""
}

// oneProblemEach checks that each bad frame has one problem and that the rest of the
// output is unchanged.
func (r *runner) oneProblemEach(damage string, got *run, added map[int]bool) error {
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
			return violates("D8", "%s: a bad frame has %d problems, want exactly one", damage, n)
		}
	}
	if others != len(r.base.problems) {
		return violates("D8", "%s: with bad frames inserted the other frames have %d problems, want %d", damage, others, len(r.base.problems))
	}
	return rules{keys: "D5", rest: "D8"}.differ(damage+": inserting bad frames changes the output of the other frames",
		r.base.folded(), got.folded())
}

// hugeValues checks that a value of 10 MB and one nested 100,000 deep are each decoded
// or reported as one problem. It checks the first case with JSON objects only.
func hugeValues(ctx context.Context, r *runner) error {
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
	for _, m := range []struct{ name, value string }{
		{"a value of 10 MB", `"` + strings.Repeat("0123456789abcdef", 10<<20/16) + `"`},
		{"a value nested 100,000 deep", strings.Repeat("[", deep) + strings.Repeat("]", deep)},
	} {
		if err := r.hugeValue(ctx, m.name, `"`+extra+`_huge":`+m.value); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) hugeValue(ctx context.Context, name, member string) error {
	frames := append([]frame.Frame(nil), r.c.Frames...)
	var at []int
	for i := range frames {
		if _, ok := addMember(frames[i].Data, `"x":0`, false); ok {
			at = append(at, i)
		}
	}
	i := at[r.rand.IntN(len(at))]
	frames[i].Data, _ = addMember(frames[i].Data, member, false)
	got, err := r.play(ctx, r.suite.Subject, r.c.Stream, frames, playOptions{})
	if err != nil {
		return withRule("D8", err)
	}
	problems := 0
	for _, p := range got.problems {
		if int(p.Frame) == i {
			problems++
		}
	}
	switch {
	case problems > 1:
		return violates("D8", "%s has %d problems, want none or one", name, problems)
	case problems == 1:
		return nil
	}
	return rules{keys: "D5", rest: "D8"}.differ("a field with "+name+" changes the output", withoutNoise(r.base), withoutNoise(got))
}

// withRule replaces D9 by the rule of the current check when the decoder failed:
// that rule forbids the failure.
func withRule(rule string, err error) error {
	var b *violation
	if errors.As(err, &b) && b.rule == "D9" {
		return &violation{rule, b.reason, b.detail}
	}
	return err
}
