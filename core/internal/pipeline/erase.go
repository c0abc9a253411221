package pipeline

import (
	"cmp"
	"context"
	"slices"

	"github.com/earshot-dev/earshot/core/internal/assemble"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
)

// Erasing selects the state that Erase drops.
type Erasing struct {
	Session func(tenant, session string) bool
	// Mentions reports whether the state of a correlation, which has several sessions, names one
	// of them.
	Mentions func(state []byte) bool
}

// erases reports whether the messages of a session are refused.
func (s *Settings) erases(tenant, session string) bool {
	return s.Erased != nil && s.Erased(tenant, session)
}

// StreamsOf returns the streams, by source and key, that have sessions and, as far as is known, no
// other.
func (p *Pipeline) StreamsOf(ctx context.Context, sessions func(tenant, session string) bool) (out [][2]string, err error) {
	cerr := p.inbox.call(ctx, func(c *core) {
		var list []checkpoint.Stream
		if list, err = c.check.Streams(""); err != nil {
			return
		}
		seen := make(map[[2]string]bool)
		add := func(source, key string) {
			if at := [2]string{source, key}; !seen[at] {
				seen[at] = true
				out = append(out, at)
			}
		}
		for _, a := range c.accounts.of {
			own := a.sessions()
			other := func(s assemble.RunRef) bool { return !sessions(s.Tenant, s.Session) }
			if len(own) > 0 && !slices.ContainsFunc(own, other) {
				add(a.record.Source, a.record.Key)
			}
		}
		for i := range list {
			if c.accounts.named[nameOf(list[i].Source, list[i].Key)] != nil {
				continue
			}
			for tenant := range tenantsOf(c, list[i].Source) {
				if sessions(tenant, list[i].Session) {
					add(list[i].Source, list[i].Key)
				}
			}
		}
	})
	if cerr != nil {
		return nil, cerr
	}
	return out, err
}

// tenantsOf are those of a source's feeds; of one that does not run all of the known ones, and the
// default.
func tenantsOf(c *core, source string) map[string]bool {
	out := make(map[string]bool)
	for s := range c.accounts.of {
		if s.feed.source == source {
			out[s.feed.tenant] = true
		}
	}
	if len(out) == 0 {
		for _, t := range c.settings.Tenants {
			out[t] = true
		}
	}
	return out
}

// Erase drops the state of sessions: of the assembler, of the decoders of files that have one, and
// in the checkpoint. It returns when everything that was applied before is with
// the exporters or in their spools, and the checkpoint has forgotten the state.
//
// The decoder of a file that is read on begins again at the file's beginning after a restart:
// without its state it would not know whose the rest is.
func (p *Pipeline) Erase(ctx context.Context, e Erasing) error {
	var committed <-chan struct{}
	var err error
	cerr := p.inbox.call(ctx, func(c *core) {
		if err = e.from(c); err == nil {
			committed, err = c.commits.closeNow(ctx)
		}
	})
	if err = cmp.Or(cerr, err); err != nil {
		return err
	}
	return p.inbox.wait(ctx, committed)
}

// from drops the state that the core has.
func (e *Erasing) from(c *core) error {
	keys, err := c.assembler.Erase(e.Session, e.Mentions)
	if err != nil {
		return err
	}
	drop := make(map[string]bool)
	for _, k := range keys {
		drop[k] = true
	}
	stored, ok := c.check.(interface {
		Groups(visit func(key string, state []byte) error) error
	})
	if ok {
		err = stored.Groups(func(key string, state []byte) error {
			k, err := assemble.ParseKey(key)
			if err == nil && (e.Session(k.Tenant, k.Session) || k.Format == "" && e.Mentions(state)) {
				drop[key] = true
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for k := range drop {
		c.commits.dropped = append(c.commits.dropped, checkpoint.Group{Key: k})
	}
	c.replays.erase(e.Session)
	for _, a := range c.accounts.of {
		if a.erase(e) {
			c.commits.touch(a)
		}
	}
	list, err := c.check.Streams("")
	if err != nil {
		return err
	}
	for i := range list {
		r := &list[i]
		if c.accounts.named[nameOf(r.Source, r.Key)] != nil {
			continue
		}
		changed := dropState(r, e)
		for tenant := range tenantsOf(c, r.Source) {
			if e.Session(tenant, r.Session) {
				forgetSession(r)
				changed = true
			}
		}
		if changed {
			c.commits.rewritten = append(c.commits.rewritten, *r)
		}
	}
	return nil
}

func forgetSession(r *checkpoint.Stream) {
	r.Session, r.Run, r.Response, r.Several = "", "", "", false
}

// dropState drops the state of a decoder that has a session.
func dropState(r *checkpoint.Stream, e *Erasing) bool {
	if !e.Mentions(r.Snapshot) {
		return false
	}
	r.SnapPos, r.Snapshot, r.Erased = 0, nil, true
	return true
}

// erase drops the sessions from the account of a stream, and reports whether it had any. A live
// recording cannot be read from its beginning: its decoder keeps its state until the connection ends.
func (a *account) erase(e *Erasing) (changed bool) {
	sessions, tenant := e.Session, a.stream.feed.tenant
	for s := range a.others {
		if sessions(tenant, s) {
			delete(a.others, s)
			changed = true
		}
	}
	if sessions(tenant, a.lastSession) {
		a.lastSession, changed = "", true
	}
	if sessions(tenant, a.record.Session) {
		forgetSession(&a.record)
		changed = true
	}
	if a.response != nil && sessions(tenant, a.response.Session) {
		a.response = nil
	}
	if !a.stream.feed.journalled && (changed || dropState(&a.record, e)) {
		a.record.SnapPos, a.record.Snapshot, a.record.Erased = 0, nil, true
		a.stream.cursor.setResume(a.resume())
		return true
	}
	return changed
}

// refuse counts a message of an erased session. The state of its file's decoder is not kept.
func (x *accounting) refuse(a *account) {
	x.metrics.Erased.With(a.stream.feed.source).Inc()
	a.ofErased = true
	if !a.stream.feed.journalled && !a.record.Erased {
		a.record.SnapPos, a.record.Snapshot, a.record.Erased = 0, nil, true
		a.stream.cursor.setResume(a.resume())
		x.commits.touch(a)
	}
}

// erasedGroup reports whether the state of a group is not to be kept.
func (s *Settings) erasedGroup(key string) bool {
	if s.Erased == nil {
		return false
	}
	k, err := assemble.ParseKey(key)
	return err == nil && s.erases(k.Tenant, k.Session)
}
