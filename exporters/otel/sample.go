package otel

import (
	"cmp"
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/msg"
)

// sampler sends the conversations that its policy chooses, whole, and no others.
//
// A conversation is the sessions and the traces that spans connect: a session has a trace for each
// turn, and a trace has the sessions of the agents that its calls started. It is kept as soon as
// one of its spans or verdicts fits the policy, and dropped when none did and it was quiet for
// Wait, or when the undecided ones are over MaxSize. Until then its spans are held, in memory and
// in a file, so that a restart forgets none. Late spans follow the decision, which is remembered
// for the last maxNames sessions and traces.
//
// The share is taken by a hash of the session alone: no order, restart or receiver changes it. A
// conversation of several sessions is kept if one of them is within the share.
//
// This is tail sampling as the collector's processor of that name has it: policies are an OR, a
// late span follows a cached decision, and over the bound the oldest is decided early. It differs
// in three points: the unit is a conversation instead of a trace; to keep is decided at once
// instead of after decision_wait; and the wait begins again with each span, because a conversation
// has no root that ends.
type sampler struct {
	next    export.Exporter
	policy  Sample
	content bool // messages are held beside the spans
	log     *slog.Logger
	now     func() time.Time

	mu      sync.Mutex // of all below: an erasure is in another goroutine
	of      map[string]*conversation
	open    *list.List // the undecided ones, the quiet ones first
	decided *list.List
	size    int64 // bytes held
	file    heldFile
	plan    plan

	stats struct{ kept, dropped, held atomic.Int64 }
}

var (
	_ export.Sampler  = (*sampler)(nil)
	_ export.Exporter = (*sampler)(nil)
)

// maxNames bounds the sessions and traces that are known.
const maxNames = 1 << 17

// decision is about a conversation.
type decision string

const (
	undecided decision = ""
	kept      decision = "kept"
	dropped   decision = "dropped"
)

// conversation has its names and, while it is undecided, its records.
type conversation struct {
	names    []string // hashes of its sessions, ids of its traces
	written  int      // names in the file
	decision decision
	held     []held
	last     time.Time // a record arrived
	at       *list.Element
	in       *list.List // of which at is
}

// held are the records of a batch that are a conversation's, encoded.
type held struct {
	batch []byte
	spans int64
}

// plan is how a batch is exported; it stays the same when the batch is offered again.
type plan struct {
	batch   string
	pass    *export.Batch
	release []*conversation // whose held batches are sent first
	whole   string          // the batch of which this is a half: its records are held already
}

func newSampler(next export.Exporter, p Sample, file string, content bool, now func() time.Time, log *slog.Logger) (*sampler, error) {
	s := &sampler{next: next, policy: p, content: content, log: log, now: now, of: make(map[string]*conversation), open: list.New(), decided: list.New()}
	var err error
	if s.file, err = openHeld(file, s.replay); err != nil {
		return nil, fmt.Errorf("otel: sample: %w", err)
	}
	return s, s.compact()
}

// Sampled implements export.Sampler.
func (s *sampler) Sampled() export.Sampling {
	return export.Sampling{Kept: s.stats.kept.Load(), Dropped: s.stats.dropped.Load(), Held: s.stats.held.Load()}
}

// Export implements export.Exporter.
func (s *sampler) Export(ctx context.Context, b *export.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.ID != s.plan.batch {
		if err := s.decide(b); err != nil {
			return fmt.Errorf("otel: sample: %w", err)
		}
		s.plan.batch = b.ID
	}
	if err := s.file.flush(); err != nil {
		return fmt.Errorf("otel: sample: %w", err)
	}
	for ; len(s.plan.release) > 0; s.plan.release = s.plan.release[1:] {
		if err := s.release(ctx, s.plan.release[0]); err != nil {
			return err
		}
	}
	if err := s.next.Export(ctx, s.plan.pass); err != nil {
		return err
	}
	if s.file.grown() {
		if err := s.compact(); err != nil {
			return fmt.Errorf("otel: sample: %w", err)
		}
	}
	return nil
}

// Close implements export.Exporter.
func (s *sampler) Close(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.file.close()
	return s.next.Close(ctx)
}

// decide makes the plan of a batch, which has its id once that is done.
func (s *sampler) decide(b *export.Batch) error {
	whole := cmp.Or(s.plan.whole, s.plan.batch)
	if s.plan = (plan{pass: &export.Batch{ID: b.ID}}); whole != "" && strings.HasPrefix(b.ID, whole) {
		s.plan.whole = whole
	}
	now := s.now()
	fits, touched := make(map[*conversation]bool), []*conversation(nil)
	note := func(fit bool, tenant, session string, trace msg.TraceID) {
		c := s.join(now, namesOf(tenant, session, trace))
		if c == nil {
			return
		}
		if touched = append(touched, c); fit || session != "" && inShare(tenant, session, float64(s.policy.Share)) {
			fits[c] = true
		}
	}
	for i := range b.Spans {
		p := b.Spans[i]
		failed := s.policy.Errors && p.Outcome == msg.OutcomeError
		slow := s.policy.Slow > 0 && exportable(p) && p.End-p.Start > int64(s.policy.Slow)
		note(failed || slow, p.Tenant, p.Session, p.TraceID)
	}
	for i := range b.Verdicts {
		v := &b.Verdicts[i]
		note(s.policy.Stuck && v.Name != "healthy" && v.Session != "" && !strings.HasPrefix(v.Name, "waiting_"), v.Tenant, v.Session, v.TraceID)
	}
	for i := 0; s.content && i < len(b.Messages); i++ {
		m := b.Messages[i]
		note(false, m.Host.Tenant, m.Session, m.Host.TraceID)
	}
	done := make(map[*conversation]bool)
	for c := range fits { // one that another took in is that one now
		fits[s.of[c.names[0]]] = true
	}
	for _, c := range touched {
		if c = s.of[c.names[0]]; done[c] {
			continue
		}
		done[c] = true
		if fits[c] && c.decision == undecided {
			s.settle(c, kept)
		}
		if c.decision == kept && len(c.held) > 0 {
			s.plan.release = append(s.plan.release, c)
		}
	}
	if err := s.divide(b); err != nil {
		return err
	}
	s.expire(now)
	for c := range done {
		if c.written < len(c.names) && s.of[c.names[0]] == c {
			d := c.decision
			if len(c.held) > 0 {
				d = undecided
			}
			s.write(c, record{Decision: d})
		}
	}
	return nil
}

// divide passes the records of kept conversations on, and holds those of undecided ones.
func (s *sampler) divide(b *export.Batch) error {
	parts := make(map[*conversation]*export.Batch)
	var order []*conversation
	part := func(tenant, session string, trace msg.TraceID) *export.Batch {
		c := s.find(namesOf(tenant, session, trace))
		switch {
		case c == nil || c.decision == dropped:
			return nil
		case c.decision == kept:
			return s.plan.pass
		case parts[c] == nil:
			parts[c], order = &export.Batch{ID: b.ID + "-" + c.names[0]}, append(order, c)
		}
		return parts[c]
	}
	for i := range b.Spans {
		p := b.Spans[i]
		if !exportable(p) && !p.Tombstone {
			continue
		}
		to := part(p.Tenant, p.Session, p.TraceID)
		switch {
		case to == nil:
			s.stats.dropped.Add(1)
			continue
		case to == s.plan.pass:
			s.stats.kept.Add(1)
		}
		to.Spans = append(to.Spans, p)
	}
	for i := range b.Messages {
		m := b.Messages[i]
		if to := part(m.Host.Tenant, m.Session, m.Host.TraceID); s.content && to != nil {
			to.Messages = append(to.Messages, m)
		}
	}
	for _, c := range order {
		if parts[c].Len() == 0 || s.plan.whole != "" {
			continue
		}
		data, err := parts[c].MarshalBinary()
		if err != nil {
			return err
		}
		h := held{data, int64(len(parts[c].Spans))}
		s.hold(c, h)
		s.write(c, record{Batch: h.batch, Spans: h.spans})
	}
	return nil
}

func (s *sampler) hold(c *conversation, h held) {
	c.held = append(c.held, h)
	s.size += int64(len(h.batch))
	s.stats.held.Add(h.spans)
}

// unhold forgets the first n held batches of a conversation.
func (s *sampler) unhold(c *conversation, n int) (spans int64) {
	for _, h := range c.held[:n] {
		s.size -= int64(len(h.batch))
		spans += h.spans
	}
	s.stats.held.Add(-spans)
	c.held = c.held[n:]
	return spans
}

// settle decides about a conversation. One that is kept is written when its held batches are sent.
func (s *sampler) settle(c *conversation, d decision) {
	if c.decision = d; d == dropped {
		s.stats.dropped.Add(s.unhold(c, len(c.held)))
	}
	s.place(c)
	if len(c.held) == 0 {
		s.write(c, record{Decision: d})
	}
}

// place puts a conversation at the end of its list.
func (s *sampler) place(c *conversation) {
	if c.in != nil {
		c.in.Remove(c.at)
	}
	if c.in = s.decided; c.decision == undecided {
		c.in = s.open
	}
	c.at = c.in.PushBack(c)
}

// expire drops the conversations that are quiet or too many.
func (s *sampler) expire(now time.Time) {
	for s.open.Len() > 0 {
		c := s.open.Front().Value.(*conversation)
		if s.size > int64(s.policy.MaxSize) {
			s.log.Warn("otel: a conversation was dropped before it was decided", "max_size", s.policy.MaxSize)
		} else if now.Sub(c.last) < time.Duration(s.policy.Wait) {
			break
		}
		s.settle(c, dropped)
	}
	for len(s.of) > maxNames && s.decided.Len() > 0 {
		s.forget(s.decided.Front().Value.(*conversation))
	}
	for len(s.of) > maxNames && s.open.Len() > 1 {
		c := s.open.Front().Value.(*conversation)
		s.settle(c, dropped)
		s.forget(c)
	}
}

func (s *sampler) forget(c *conversation) {
	for _, name := range c.names {
		delete(s.of, name)
	}
	c.in.Remove(c.at)
}

// release sends the held batches of a conversation. A record that the receiver refuses for good is
// lost: the store has it.
func (s *sampler) release(ctx context.Context, c *conversation) error {
	for len(c.held) > 0 {
		var b export.Batch
		if err := b.UnmarshalBinary(c.held[0].batch); err != nil {
			return err
		}
		if err := s.send(ctx, &b); err != nil {
			return err
		}
		s.stats.kept.Add(s.unhold(c, 1))
	}
	s.write(c, record{Decision: kept})
	return s.file.flush()
}

func (s *sampler) send(ctx context.Context, b *export.Batch) error {
	err := s.next.Export(ctx, b)
	if !export.IsPermanent(err) {
		return err
	}
	if b.Len() < 2 {
		s.log.Warn("otel: a record was refused and is not sent", "batch", b.ID, "error", err)
		return nil
	}
	for _, half := range b.Halves() {
		if err := s.send(ctx, half); err != nil {
			return err
		}
	}
	return nil
}

// inShare reports whether a session is within a share of all.
func inShare(tenant, session string, share float64) bool {
	sum := sha256.Sum256([]byte(tenant + "\x00" + session))
	return float64(binary.BigEndian.Uint64(sum[:8]))/math.MaxUint64 < share
}

// namesOf are the names by which a record is found: no id of a session is among them, because
// they stay when the session is erased.
func namesOf(tenant, session string, trace msg.TraceID) []string {
	names := make([]string, 0, 2)
	if session != "" {
		names = append(names, export.Session{Tenant: tenant, ID: session}.Key()[:24])
	}
	if trace != (msg.TraceID{}) {
		names = append(names, hex.EncodeToString(trace[:]))
	}
	return names
}

func (s *sampler) find(names []string) *conversation {
	for _, name := range names {
		if c := s.of[name]; c != nil {
			return c
		}
	}
	return nil
}

// join returns the conversation of the names, which are of one from now on.
func (s *sampler) join(now time.Time, names []string) *conversation {
	c := s.find(names)
	if c == nil {
		if len(names) == 0 {
			return nil
		}
		c = &conversation{}
	}
	for _, name := range names {
		switch other := s.of[name]; {
		case other == c:
		case other == nil:
			s.of[name], c.names = c, append(c.names, name)
		default:
			s.merge(c, other)
		}
	}
	c.last = now
	s.place(c)
	return c
}

// merge makes two conversations one. If one is decided, so is the other; if both are, to keep
// prevails, and the spans that were dropped stay absent.
func (s *sampler) merge(c, other *conversation) {
	if other.in != nil {
		other.in.Remove(other.at)
	}
	for _, name := range other.names {
		s.of[name] = c
	}
	c.names, c.held = append(c.names, other.names...), append(c.held, other.held...)
	switch was := [2]decision{c.decision, other.decision}; {
	case slices.Contains(was[:], kept):
		c.decision = kept
	case slices.Contains(was[:], dropped):
		s.settle(c, dropped)
	}
}
