package assemble

import "github.com/earshot-dev/earshot/core/msg"

// exchange is the request that began a run, and how its response came.
type exchange struct {
	Stream uint64        `json:"stream"`
	At     int64         `json:"at"` // of the request; Unix ns
	Remote *msg.SpanLink `json:"remote,omitempty"`
	Pace   msg.Pace      `json:"pace,omitzero"`
}

// SetResponse says what is known of the response that a stream is: before its first
// message, of who asked for it, and at its end, of its pace. at is when it was asked
// for, and s is not kept.
//
// Of all requests that may have begun a run and that speak of it at the top level,
// the earliest is taken, in whatever order their streams are read. What it says is
// the run's: a link to whoever sent the request and, unless many runs share one
// connection, the pace. A response that ends after its run has the run's span given
// again, under a higher version.
func (a *Assembler) SetResponse(stream uint64, at int64, s *msg.Stream) error {
	if !s.Starts() {
		return nil
	}
	x := exchange{Stream: stream, At: at}
	if l, ok := s.Remote(); ok {
		x.Remote = &l
	}
	if !s.Socket() {
		x.Pace = s.Pace
	}
	a.heard[stream] = x
	if s.Session == "" || x.Pace.Start == 0 {
		return nil
	}
	g, err := a.group(s.Tenant, s.Format, s.Session)
	if err != nil {
		return err
	}
	for _, r := range g.Runs {
		if r.Begun != nil && r.Begun.Stream == stream && r.Begun.Pace != x.Pace {
			r.Begun.Pace = x.Pace
			r.changed, r.Given, g.dirty = true, false, true
		}
	}
	return nil
}

// ForgetResponse forgets what Heard said of a stream that is read no more.
func (a *Assembler) ForgetResponse(stream uint64) { delete(a.heard, stream) }

// begun notes which request began the message's run.
func (a *Assembler) begun(g *group, m *msg.Message, stream uint64) {
	if m.Run == "" || m.ParentRun != "" || m.ParentCall != "" {
		return
	}
	x, ok := a.heard[stream]
	if !ok {
		return
	}
	r := g.Runs[m.Run]
	if r == nil || r.Parent != "" || r.Begun != nil && (r.Begun.At < x.At || r.Begun.Stream == stream) {
		return
	}
	kept := x // on the heap, where those that are looked at are not
	r.Begun = &kept
}
