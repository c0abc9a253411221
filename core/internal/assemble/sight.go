package assemble

import (
	"cmp"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/core/msg"
)

// A message that several views have is one row, which is of one of them; the words of the others are
// not kept. So the span of the message has which they are, whichever was read first: a row of messages
// is written once, a span again whenever a view adds to it.

// sights are the messages that the views have of each part of a fact.
type sights map[string][]sight

// sight is a part of a fact as a view has it.
type sight struct {
	Format string `json:"format"`
	Rank   uint8  `json:"rank"`
	ID     msg.ID `json:"id"`
	// Several is set where the view has more than one message there, as a run with two prompts:
	// which of them another view has is not known.
	Several bool `json:"several,omitempty"`
}

// add adds a sight, and reports whether it is new.
func (s sights) add(part string, mine sight) bool {
	list := s[part]
	at := slices.IndexFunc(list, func(o sight) bool { return o.Format == mine.Format })
	switch {
	case at < 0:
		list = append(list, mine)
	case list[at].Several || list[at].ID == mine.ID && !mine.Several:
		return false
	default:
		list[at].Several = true
	}
	slices.SortFunc(list, func(a, b sight) int {
		return cmp.Or(cmp.Compare(b.Rank, a.Rank), cmp.Compare(a.Format, b.Format))
	})
	s[part] = list
	return true
}

// merge adds the sights of a fact that turned out to be the same.
func (s *sights) merge(o sights) {
	if *s == nil && len(o) > 0 {
		*s = make(sights)
	}
	for part, list := range o {
		for _, mine := range list {
			s.add(part, mine)
		}
	}
}

// messages are the messages that more than one view has. Those of views below a rank are taken back.
func (s sights) messages(least uint8) (out []msg.SeenMessage) {
	for _, list := range s {
		if list[0].Several || list[0].Rank < least {
			continue
		}
		m := msg.SeenMessage{ID: list[0].ID}
		for _, v := range list {
			if !v.Several {
				m.By = append(m.By, v.Format)
			}
		}
		if len(m.By) > 1 {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b msg.SeenMessage) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	return out
}

// seen records that a view has a part of a fact. The span of a fact that is emitted already is emitted again, if
// another view has the part too.
func (x *reconciler) seen(g *group, f *fact, part string, m *msg.Message) {
	if f.Seen == nil {
		f.Seen = make(sights)
	}
	if f.Seen[part] == nil {
		part = strings.Clone(part)
	}
	if !f.Seen.add(part, sight{Format: strings.Clone(m.Host.Format), Rank: g.view.Rank, ID: m.Host.ID}) {
		return
	}
	if f.dirty = true; len(f.Seen[part]) > 1 {
		x.emit(f, false)
	}
}
