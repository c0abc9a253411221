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
// and unknown fields are to be expected everywhere.
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
	got, err := r.play(ctx, r.suite.Subject, r.c.Stream, frames, how{})
	if err != nil {
		return otherRule("D7", err)
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
			known = append(known, got.said[i])
		}
	}
	if len(got.problems) > len(r.base.problems) {
		return breaks("D7", "an unknown event gives a problem: %s: %s", got.problems[0].Reason, got.problems[0].Detail)
	}
	if err := (rules{keys: "D5", rest: "D7"}).differ("unknown events between the frames change what the known ones give",
		r.base.folded(), fold(known, got.left)); err != nil {
		return err
	}
	return kept(frames, added, unknown)
}

// kept checks that every unknown event is there, raw, under a key of its own.
func kept(frames []frame.Frame, added map[int]bool, unknown []msg.Message) error {
	if n, m := len(unknown), len(added); n < m {
		return breaks("D7", "unknown input is dropped: of %d unknown events %d are kept as messages of kind unknown", m, n)
	} else if n > m {
		return breaks("D7", "%d unknown events give %d messages of kind unknown", m, n)
	}
	ids := make(map[string]bool)
	for i := range unknown {
		m := &unknown[i]
		f := &frames[m.Frame]
		switch {
		case m.Content.String() != string(f.Data):
			return &broken{"D7", "an unknown event is not kept raw", "- " + string(f.Data) + "\n+ " + m.Content.String()}
		case m.Attr("type") == "":
			return &broken{"D7", `an unknown event has no attribute "type" that names it`, line(m)}
		case ids[m.Key]:
			return &broken{"D5", "two unknown events have the same key", line(m)}
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
			return skipped("no frame is a JSON object: there is nothing to add a field to")
		}
		got, err := r.play(ctx, r.suite.Subject, r.c.Stream, frames, how{})
		if err != nil {
			return otherRule("D7", err)
		}
		if err := (rules{keys: "D5", rest: "D7"}).differ("an unknown field in the frames changes what they give",
			withoutNoise(r.base), withoutNoise(got)); err != nil {
			return err
		}
	}
	return nil
}

// withoutNoise leaves out what an unknown field may show in: raw frames and their
// keys, attributes of its name, and what keeps unknown fields (package unknown).
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

// insert puts a frame before every frame of the case and after the last, made to
// be like its neighbour, and returns where they are.
func (r *runner) insert(make1 func(i int, like frame.Frame) frame.Frame) (frames []frame.Frame, added map[int]bool) {
	added = make(map[int]bool)
	add := func(i int) {
		added[len(frames)] = true
		frames = append(frames, make1(i, r.like(i)))
	}
	for i, f := range r.c.Frames {
		add(i)
		frames = append(frames, f)
	}
	add(len(r.c.Frames))
	return frames, added
}

// like returns the frame from i on, or else before i, that carries the stream's
// own traffic, by preference a JSON object.
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
