package conformance

import (
	"context"
	"fmt"
	"strings"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

// noise is C9. The peer may be newer than the decoder: events of unknown types
// and unknown fields may occur anywhere.
func noise(ctx context.Context, r *runner) error {
	if err := noisyEvents(ctx, r); err != nil {
		return err
	}
	return noisyFields(ctx, r)
}

func noisyEvents(ctx context.Context, r *runner) error {
	frames, added := r.insert(func(i int, like frame.Frame) frame.Frame {
		if like.Name != "" {
			like.Name = "earshot_noise"
		}
		like.ID = ""
		like.Data = fmt.Appendf(nil, `{"type":"earshot_noise","earshot_noise":{"n":%d,"words":["\u00fc",null,1.5e3]}}`, i)
		return like
	})
	got, err := r.play(ctx, r.suite.Subject, r.c.Stream, frames, playOptions{})
	if err != nil {
		return withRule("D7", err)
	}
	if err := validate(got); err != nil {
		return err
	}
	var known []item
	var unknown []msg.Message
	for i, m := range got.messages {
		if added[int(m.Frame)] && m.Kind == msg.Unknown {
			unknown = append(unknown, m)
		} else {
			known = append(known, got.emitted[i])
		}
	}
	if len(got.problems) > len(r.base.problems) {
		return violates("D7", "an unknown event is reported as a problem: %s: %s", got.problems[0].Reason, got.problems[0].Detail)
	}
	if err := (rules{keys: "D5", rest: "D7"}).differ("unknown events between the frames change the output of the known ones",
		r.base.folded(), fold(known, got.flushed)); err != nil {
		return err
	}
	return unknownsKept(frames, added, unknown)
}

// unknownsKept checks that the output has every unknown event, raw, under its own key.
func unknownsKept(frames []frame.Frame, added map[int]bool, unknown []msg.Message) error {
	if n, m := len(unknown), len(added); n < m {
		return violates("D7", "unknown input is dropped: of %d unknown events %d are kept as messages of kind unknown", m, n)
	} else if n > m {
		return violates("D7", "%d unknown events become %d messages of kind unknown", m, n)
	}
	ids := make(map[string]bool)
	for i := range unknown {
		m := &unknown[i]
		f := &frames[m.Frame]
		switch {
		case m.Content.String() != string(f.Data):
			return &violation{"D7", "an unknown event is not kept raw", "- " + string(f.Data) + "\n+ " + m.Content.String()}
		case m.Attr("type") == "":
			return &violation{"D7", `an unknown event has no attribute "type" that names it`, line(m)}
		case ids[m.Key]:
			return &violation{"D5", "two unknown events have the same key", line(m)}
		}
		ids[m.Key] = true
	}
	return nil
}

const extra = "earshot_extra"

func noisyFields(ctx context.Context, r *runner) error {
	for _, first := range []bool{false, true} {
		frames := append([]frame.Frame(nil), r.c.Frames...)
		changed := false
		for i := range frames {
			if data, ok := addMember(frames[i].Data, `"`+extra+`":{"type":"user","id":[null,true]}`, first); ok {
				frames[i].Data, changed = data, true
			}
		}
		if !changed {
			return skipped("no frame is a JSON object: a field cannot be added")
		}
		got, err := r.play(ctx, r.suite.Subject, r.c.Stream, frames, playOptions{})
		if err != nil {
			return withRule("D7", err)
		}
		if err := (rules{keys: "D5", rest: "D7"}).differ("an unknown field in the frames changes the output",
			withoutNoise(r.base), withoutNoise(got)); err != nil {
			return err
		}
	}
	return nil
}

// withoutNoise removes the parts of the output that may contain an unknown field: raw
// frames and their keys, attributes of its name, and the attribute and the messages of
// package unknown.
func withoutNoise(r *run) []item {
	var out []msg.Message
	for _, m := range r.foldedMessages() {
		switch {
		case m.Kind == msg.Unknown && m.Attr("type") == unknown.Attr && strings.Contains(m.Content.String(), extra):
			continue
		case m.Kind == msg.Unknown:
			m.Key, m.Content = "", msg.Text{}
		}
		var attrs []msg.Attr
		for _, a := range m.Attrs {
			if !strings.Contains(a.Key, extra) && a.Key != unknown.Attr {
				attrs = append(attrs, a)
			}
		}
		m.Attrs = attrs
		out = append(out, m)
	}
	return items(out)
}

// insert adds a frame before every frame of the case and after the last, which build
// makes from its neighbour, and returns the indexes of the added frames.
func (r *runner) insert(build func(i int, like frame.Frame) frame.Frame) (frames []frame.Frame, added map[int]bool) {
	added = make(map[int]bool)
	add := func(i int) {
		added[len(frames)] = true
		frames = append(frames, build(i, r.like(i)))
	}
	for i, f := range r.c.Frames {
		add(i)
		frames = append(frames, f)
	}
	add(len(r.c.Frames))
	return frames, added
}

// like returns the first frame with data of the stream, from i on or else before i;
// it prefers a JSON object.
func (r *runner) like(i int) frame.Frame {
	var plain *frame.Frame
	for _, part := range [][]frame.Frame{r.c.Frames[i:], r.c.Frames[:i]} {
		for j := range part {
			f := &part[j]
			switch f.Kind {
			case frame.Close, frame.Request, frame.Binary:
				continue
			}
			if _, ok := addMember(f.Data, `"x":0`, true); ok {
				return *f
			}
			if plain == nil {
				plain = f
			}
		}
	}
	if plain == nil {
		return r.c.Frames[0]
	}
	return *plain
}
