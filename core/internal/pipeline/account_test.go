package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
	"github.com/earshot-dev/earshot/core/internal/wire"
	"github.com/earshot-dev/earshot/core/msg"
)

// aFrame is a frame of ten bytes, read a second for each byte behind 1,600,000,500.
func aFrame(pos int64, data string) frame.Frame {
	return frame.Frame{Pos: pos, End: pos + 10, At: (1_600_000_500 + pos) * 1e9, Data: []byte(data)}
}

// answered has the core take a decoder's answer to frames.
func answered(t *testing.T, p *Pipeline, a *account, frames []frame.Frame, r wire.Result) {
	t.Helper()
	d := &decode{ticket: ticket{a.stream, a.generation, frames[0].Pos}, batch: &frame.Batch{Frames: frames}, held: lease{0, newBudget(1), newBudget(1)}}
	d.encode(a.stream.cursor.view())
	p.inbox.pending.Add(1)
	if err := p.core.take(result{d, &r}); err != nil {
		t.Fatal(err)
	}
}

// said returns a message of one frame.
func said(at int32, key string) msg.Message {
	return msg.Message{Frame: at, Key: key, Session: "s", Run: "r", Kind: msg.User, Complete: msg.Complete, Time: 1_500_000_000e9, Content: msg.Plain("text of " + key)}
}

// entered are the messages and the dead letters of the open batch, a line each.
func entered(p *Pipeline) (out []string) {
	rows := &p.core.commits.batch.rows
	for _, m := range rows.Messages {
		h := &m.Host
		line := fmt.Sprintf("%s %q %d of %s %s %s %s, at %d of %s, %dth, read %d", m.Key, m.Content, m.Time/1e9, h.Tenant, h.Source, h.Format, h.Server, h.Offset, h.Origin, h.Seq, h.Observed/1e9)
		if h.Tombstone {
			line = "gone: " + line
		}
		out = append(out, line)
	}
	for _, l := range rows.DeadLetters {
		out = append(out, fmt.Sprintf("%s %s %q of %s %s %s %s %q, at %d of %s, %d bytes, read %d, %d", l.Stage, l.Reason, l.Detail, l.Tenant, l.Source, l.Format, l.Session, l.Payload, l.Offset, l.Origin, l.Bytes, l.Seen/1e9, l.Ver))
	}
	return out
}

// counted are the metrics that are not 0, with their labels.
func counted(t *testing.T, m *telemetry.Metrics, prefixes ...string) (out []string) {
	t.Helper()
	families, err := m.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, x := range f.GetMetric() {
			n := x.GetCounter().GetValue() + x.GetGauge().GetValue()
			if n == 0 || !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(f.GetName(), p) }) {
				continue
			}
			line := f.GetName()
			for _, l := range x.GetLabel() {
				line += " " + l.GetValue()
			}
			out = append(out, fmt.Sprint(line, " ", n))
		}
	}
	slices.Sort(out)
	return out
}

// TestFramesAreAccountedFor has a decoder answer to frames of every kind: each byte is in one sum of the account, each frame that is not decoded is a dead letter of the
// session before it, and the messages have their place.
func TestFramesAreAccountedFor(t *testing.T) {
	p, feed := stopped(t, Settings{Metrics: telemetry.New(), MaxDeadLetter: 7})
	feed.SetServer("quay:80")
	feed.SetRedactor(hidden{})
	a := opened(t, p, feed, "k", 0)
	a.ended, a.decoderClosed, feed.format.inQuarantine = true, true, 5
	clear(p.core.accounts.awake)
	frames := []frame.Frame{
		aFrame(0, "two"), aFrame(10, "a secret that is damaged"), aFrame(20, "cut"), aFrame(30, "crashes"), aFrame(40, "strange"), aFrame(50, "invalid"), aFrame(60, "nothing"), aFrame(70, "partial"),
	}
	frames[2].Reason, frames[2].Dropped = msg.ReasonTooLong, 4
	frames[3].Reason = msg.ReasonDecoderCrash
	strange, invalid, partial, behind := said(2, "strange"), said(3, ""), said(5, "partial"), said(-1, "behind")
	strange.Kind, strange.Attrs = msg.Unknown, []msg.Attr{{Key: "type", Value: "hologram"}}
	partial.Complete, partial.Session = msg.Partial, "other"
	answered(t, p, a, frames, wire.Result{
		Messages: []msg.Message{said(0, "first"), said(0, "second"), strange, invalid, partial, behind},
		Problems: []msg.Problem{{Reason: msg.ReasonInvalidJSON, Detail: "a secret", Frame: 1}, {Reason: msg.ReasonInvalidJSON, Frame: 99}},
	})
	want := []string{
		`first "text of first" 1500000000 of tenant source notes quay:80, at 0 of /k, 0th, read 1600000500`,
		`second "text of second" 1500000000 of tenant source notes quay:80, at 0 of /k, 1th, read 1600000500`,
		`strange "text of strange" 1500000000 of tenant source notes quay:80, at 40 of /k, 40th, read 1600000540`,
		`partial "text of partial" 1500000000 of tenant source notes quay:80, at 70 of /k, 70th, read 1600000570`,
		`behind "text of behind" 1500000000 of tenant source notes quay:80, at 80 of /k, 80th, read 1600000570`,
		`decode invalid_json "a ***" of tenant source notes s "a *** t", at 10 of /k, 24 bytes, read 1600000510, 5`,
		`read too_long "" of tenant source notes s "cut", at 20 of /k, 7 bytes, read 1600000520, 5`,
		`decode decoder_crash "" of tenant source notes s "crashes", at 30 of /k, 7 bytes, read 1600000530, 5`,
		`decode invalid_message "message without key" of tenant source notes s "invalid", at 50 of /k, 7 bytes, read 1600000550, 5`,
	}
	if d := cmp.Diff(want, entered(p)); d != "" {
		t.Error(d)
	}
	sums := msg.Ledger{Tenant: "tenant", Source: "source", Format: "notes", Stream: "k", Origin: "/k", Read: 80, Decoded: 50, Quarantined: 26, Dropped: 4, Reason: "too_long", DroppedAt: 1600000520e9, Frames: 8, Messages: 4, Unknown: 1, Problems: 4, Seen: 9, Since: 3, Ver: 80}
	if d := cmp.Diff(sums, a.ledger(9, 3)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(Progress{Bytes: 80, Frames: 8, Messages: 5, Problems: 4}, p.Progress()); d != "" {
		t.Error(d)
	}
	figures := []string{
		"earshot_messages_total notes unknown source 1", "earshot_messages_total notes user source 4",
		"earshot_problems_total decoder_crash source decode 1", "earshot_problems_total invalid_json source decode 1",
		"earshot_problems_total invalid_message source decode 1", "earshot_problems_total too_long source read 1",
		"earshot_source_bytes_total decoded source 50", "earshot_source_bytes_total dropped source 4", "earshot_source_bytes_total quarantined source 26",
		"earshot_source_frames_total source 8", "earshot_unknown_total notes hologram 1",
	}
	if d := cmp.Diff(figures, counted(t, p.metrics, "earshot_messages", "earshot_problems", "earshot_source_", "earshot_unknown")); d != "" {
		t.Error(d)
	}
	if n := feed.format.circuit.progress.Load(); n != 8 || feed.format.inQuarantine != 0 {
		t.Errorf("progress of %d frames, %d in quarantine one after the other", n, feed.format.inQuarantine)
	}
	if a.record.Read != 1_600_000_570e9 || a.ended || a.decoderClosed || len(p.core.accounts.awake) != 1 || p.core.commits.changed[a.stream.name] != a {
		t.Errorf("read %d, ended %t, decoder closed %t", a.record.Read, a.ended, a.decoderClosed)
	}
}

// hidden is a redactor that hides one word.
type hidden struct{}

func (hidden) String(s string) string               { return strings.ReplaceAll(s, "secret", "***") }
func (r hidden) Payload(b []byte) []byte            { return []byte(r.String(string(b))) }
func (hidden) Message(m *msg.Message, clean []byte) {}

// TestFramesAreReadAgain: frames that were accounted for before a restart, or before a late link, are not counted again. Of a stream that is decoded again for a link the
// messages of the runs that move are rows again, up to where it had come.
func TestFramesAreReadAgain(t *testing.T) {
	other := said(1, "other")
	other.Run = "moves"
	frames := func() []frame.Frame {
		return []frame.Frame{aFrame(0, "a"), aFrame(10, "b"), aFrame(20, "c")}
	}
	last := said(2, "last")
	r := wire.Result{Messages: []msg.Message{said(0, "first"), other, last}, Problems: []msg.Problem{{Reason: "bad", Frame: 1}, {Reason: "bad", Frame: 2}}}
	for name, x := range map[string]struct {
		pos    int64
		replay *checkpoint.Replay
		keys   string // of the rows
		counts string // frames, messages, problems, decoded, quarantined
		left   bool   // it is still decoded again
	}{
		"for the first time":        {0, nil, "first other last bad bad", "3 3 2 10 20", false},
		"after a restart":           {20, nil, "last bad", "1 1 1 0 10", false},
		"of what is read":           {30, nil, "", "0 0 0 0 0", false},
		"for a link":                {0, &checkpoint.Replay{Until: 20, Runs: []string{"moves"}}, "other last bad", "1 1 1 0 10", false},
		"for a link, not to there":  {0, &checkpoint.Replay{Until: 31, Runs: []string{"moves"}}, "other", "0 0 0 0 0", true},
		"for a link, up to its end": {0, &checkpoint.Replay{Until: 30, Runs: []string{"r"}}, "first last", "0 0 0 0 0", false},
	} {
		p, feed := stopped(t, Settings{})
		a := opened(t, p, feed, "k", x.pos)
		a.record.Replay, a.ended = x.replay, true
		answered(t, p, a, frames(), wire.Result{Messages: slices.Clone(r.Messages), Problems: r.Problems})
		var keys []string
		for _, line := range entered(p) {
			key, rest, _ := strings.Cut(line, " ")
			if key == "decode" {
				key, _, _ = strings.Cut(rest, " ")
			}
			keys = append(keys, key)
		}
		l := a.ledger(0, 0)
		if got := fmt.Sprint(l.Frames, l.Messages, l.Problems, l.Decoded, l.Quarantined); got != x.counts || strings.Join(keys, " ") != x.keys {
			t.Errorf("%s: %q, counted %s", name, keys, got)
		}
		if n := p.Progress(); n.Frames != l.Frames || n.Messages != l.Messages || a.record.Pos != 30 || (a.record.Replay != nil) != x.left || a.ended != (x.pos == 30) || (len(p.core.commits.changed) == 0) != (x.pos == 30) {
			t.Errorf("%s: progress %+v, up to %d, again %+v", name, n, a.record.Pos, a.record.Replay)
		}
	}
}

// TestFramesBehindAFailure: a decoder that fails at a frame has decoded those before it; it is withheld, and the stream is delivered again from its snapshot.
func TestFramesBehindAFailure(t *testing.T) {
	p, feed := stopped(t, Settings{Metrics: telemetry.New()})
	a := opened(t, p, feed, "k", 0)
	frames := []frame.Frame{aFrame(0, "a"), aFrame(10, "cut"), aFrame(20, "fails"), aFrame(30, "behind")}
	frames[1].Reason = "cut"
	answered(t, p, a, frames, wire.Result{Messages: []msg.Message{said(0, "first")}, Failure: &wire.Failure{Error: "by order", Frame: 1}})
	if l := a.ledger(0, 0); l.Read != 20 || l.Decoded != 10 || l.Quarantined != 10 || l.Messages != 1 {
		t.Errorf("%+v", l)
	}
	if d := cmp.Diff(map[int64]string{20: msg.ReasonDecoderFailed}, a.record.Poison); d != "" || a.generation != 1 || a.stalled || a.stream.cursor.next != 0 {
		t.Errorf("generation %d, delivered from %d, stalled %t %s", a.generation, a.stream.cursor.next, a.stalled, d)
	}
	// One that fails at none has a snapshot that is not its own, or fails always.
	a.record.SnapPos, a.record.Snapshot = 10, []byte("state")
	for stalled, generation := range []int{2, 2} {
		answered(t, p, a, frames, wire.Result{Failure: &wire.Failure{Error: "by order", Frame: -1}})
		if (a.stalled) != (stalled == 1) || a.generation != generation || a.record.Snapshot != nil || a.record.SnapPos != 0 || a.stream.cursor.view().resume.snapshot != nil {
			t.Errorf("%d: stalled %t, generation %d, a state of %d bytes", stalled, a.stalled, a.generation, len(a.record.Snapshot))
		}
	}
	if n := metric(t, p.metrics, "earshot_decoder_failures_total"); n != 3 {
		t.Errorf("%v failures are counted", n)
	}
	if letters := p.core.commits.batch.rows.DeadLetters; len(letters) != 2 || letters[1].Stage != "read" || letters[1].Reason != msg.ReasonDecoderFailed || letters[1].Detail != "by order" {
		t.Errorf("dead letters %+v", letters)
	}
}

// TestTimesOfMessages: the version of an incomplete message that was stored under another time is taken back. The time of a file's first read dates messages without a time and is then kept
// before such a row is anywhere; a recording's frames date theirs.
func TestTimesOfMessages(t *testing.T) {
	p, feed := stopped(t, Settings{})
	a := opened(t, p, feed, "k", 0)
	a.anchored, a.record.Anchor = false, 1_600_000_400e9
	open, shut, undated := said(0, "k"), said(1, "k"), said(0, "undated")
	open.Complete, open.Tool.Arguments, open.Delegation.Task = msg.Partial, msg.Plain("arguments"), msg.Plain("task")
	shut.Time, shut.Tool.Arguments, shut.Delegation.Task, undated.Time = open.Time+7e9, open.Tool.Arguments, open.Delegation.Task, 0
	answered(t, p, a, []frame.Frame{aFrame(0, ""), aFrame(10, "")}, wire.Result{Messages: []msg.Message{undated, undated, open, shut}})
	rows := p.core.commits.batch.rows.Messages
	var got []string
	for i := range rows {
		got = append(got, fmt.Sprintf("%s %d %t %s%s%s", rows[i].Key, rows[i].Time/1e9, rows[i].Host.Tombstone, rows[i].Content, rows[i].Tool.Arguments, rows[i].Delegation.Task))
	}
	want := []string{"undated 1600000400 false text of undated", "undated 1600000400 false text of undated", "k 1500000000 false text of kargumentstask", "k 1500000000 true ", "k 1500000007 false text of kargumentstask"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if len(p.core.commits.anchors) != 1 || !a.anchored {
		t.Errorf("%d anchors are used", len(p.core.commits.anchors))
	}
	feed.journalled = true
	b := opened(t, p, feed, "live", 0)
	b.anchored = false
	far := said(0, "far")
	far.Time = 1e9 // a clock that was never set
	answered(t, p, b, []frame.Frame{aFrame(0, "")}, wire.Result{Messages: []msg.Message{undated, far}})
	for _, m := range p.core.commits.batch.rows.Messages[5:] {
		if m.Time != 1_600_000_500e9 || (m.Attr(AttrClockTime) != "") != (m.Key == "far") || m.Precision != msg.Inferred {
			t.Errorf("%s of a recording is dated %d, %v", m.Key, m.Time/1e9, m.Attrs)
		}
	}
	if len(p.core.commits.anchors) != 1 {
		t.Error("the anchor of a recording is used")
	}
}

// TestMessagesOfAnErasedSession are refused and counted, with the problems behind them; the state of a file's decoder is dropped, once.
func TestMessagesOfAnErasedSession(t *testing.T) {
	for _, live := range []bool{false, true} {
		p, feed := stopped(t, Settings{Metrics: telemetry.New(), Erased: func(_, session string) bool { return session == "gone" }})
		feed.journalled = live
		a := opened(t, p, feed, "k", 0)
		a.record.SnapPos, a.record.Snapshot = 5, []byte("state")
		a.stream.cursor.setResume(a.resume())
		gone := said(0, "gone")
		gone.Session = "gone"
		answered(t, p, a, []frame.Frame{aFrame(0, ""), aFrame(10, ""), aFrame(20, ""), aFrame(30, "")}, wire.Result{
			Messages: []msg.Message{gone, said(2, "kept")}, Problems: []msg.Problem{{Reason: "bad", Frame: 1}, {Reason: "bad", Frame: 3}}, HasSnapshot: true, Snapshot: []byte("of gone"),
		})
		if rows := entered(p); len(rows) != 2 || metric(t, p.metrics, "earshot_erased_total") != 2 {
			t.Errorf("live %t: %q", live, rows)
		}
		if r := &a.record; r.Problems != 1 || r.Messages != 1 || r.Erased == live || (r.Snapshot == nil) == live || (r.SnapPos == 0) == live || a.stream.cursor.view().resume.pos != r.SnapPos {
			t.Errorf("live %t: %+v", live, r)
		}
	}
}

// TestMessagesOfNoFrame: those of a flush and of an end have the place behind the last frame. Those of a flush do not move the stream's clock.
func TestMessagesOfNoFrame(t *testing.T) {
	for name, command := range map[string]func(ticket) command{
		"flush": func(at ticket) command { return &flush{ticket: at} },
		"open":  func(at ticket) command { return &openDecoder{at} },
		"close": func(at ticket) command { return &closeDecoder{at} },
		"end":   func(at ticket) command { return &end{at, make(chan error, 1)} },
	} {
		p, feed := stopped(t, Settings{})
		a := opened(t, p, feed, "k", 10)
		a.decoded, a.record.Read = 10, 1_600_000_500e9
		if got := command(ticket{a.stream, 0, 10}).attempt(); got.from != 10 || got.to != 11 || got.stream != a.stream || (got.step == atOpen) != (name == "open") || got.step == atFrames {
			t.Errorf("%s: %+v", name, got)
		}
		p.inbox.pending.Add(1)
		if err := p.core.take(result{command(ticket{a.stream, 0, 10}), &wire.Result{Messages: []msg.Message{said(0, "a"), said(0, "b")}}}); err != nil {
			t.Fatal(err)
		}
		var got []string
		rows := p.core.commits.batch.rows.Messages
		for i := range rows {
			h := &rows[i].Host
			got = append(got, fmt.Sprint(rows[i].Key, " ", h.Offset, " ", h.Seq, " ", h.Observed/1e9))
		}
		if d := cmp.Diff([]string{"a 10 10 1600000500", "b 10 11 1600000500"}, got); d != "" || (a.record.Clock.Last == 0) != (name == "flush") || a.record.Messages != 2 || p.core.commits.changed[a.stream.name] != a {
			t.Errorf("%s: clock %+v, %d messages %s", name, a.record.Clock, a.record.Messages, d)
		}
		if flushed := name == "flush" || name == "end"; a.flushed() != flushed {
			t.Errorf("%s: flushed %t", name, !flushed)
		}
	}
}

// TestMarksAreApplied when the frames before them are accounted for: not earlier, and once.
func TestMarksAreApplied(t *testing.T) {
	p, feed := stopped(t, Settings{})
	a := opened(t, p, feed, "k", 0)
	for _, pos := range []int64{10, 20, 21} {
		timing := msg.Pace{Start: pos, Total: 5}
		a.marks = append(a.marks, mark{pos, source.ResponseInfo{Method: "POST", Timing: &timing}})
	}
	for i, want := range []int{1, 2, 3} {
		answered(t, p, a, []frame.Frame{aFrame(10*int64(i), "")}, wire.Result{Messages: []msg.Message{said(0, fmt.Sprint(i))}})
		if got := p.core.commits.batch.rows.Streams; len(got) != want || len(a.marks) != 3-want {
			t.Fatalf("frame %d: %d rows, %d marks", i, len(got), len(a.marks))
		}
	}
	rows := p.core.commits.batch.rows.Streams
	if r := rows[2]; r.Tenant != "tenant" || r.Source != "source" || r.Format != "notes" || r.Stream != "k" || r.Origin != "/k" || r.Method != "POST" || r.Session != "s" || r.Run != "r" || r.Pace.Start != 21 || r.Ver != 26 {
		t.Errorf("row %+v", r)
	}
}

// TestCommandsAreEncoded: a stream's end and a flush have the decoder emit its open messages, unless that ends its process; the end of a recording is a frame of its own.
func TestCommandsAreEncoded(t *testing.T) {
	_, feed := stopped(t, Settings{})
	_, live := stopped(t, Settings{})
	live.journalled = true
	for _, x := range []struct {
		name    string
		feed    *Feed
		noFlush bool
		want    wire.Batch
	}{
		{"end", feed, false, wire.Batch{Flush: true, Snapshot: true, Close: true}},
		{"end", feed, true, wire.Batch{Close: true}},
		{"end", live, false, wire.Batch{Flush: true, Snapshot: true, Close: true, Frames: []frame.Frame{{Kind: frame.Close, Name: frame.Lost, Pos: 10, End: 10}}}},
		{"end", live, true, wire.Batch{Close: true}},
		{"flush", feed, false, wire.Batch{Flush: true, Snapshot: true}},
		{"flush", live, true, wire.Batch{}},
		{"close", live, false, wire.Batch{Close: true}},
		{"open", live, false, wire.Batch{}},
	} {
		at := ticket{&stream{feed: x.feed}, 0, 10}
		cmd := map[string]command{"end": &end{ticket: at}, "flush": &flush{ticket: at}, "close": &closeDecoder{at}, "open": &openDecoder{at}}[x.name]
		if d := cmp.Diff(x.want, cmd.encode(view{quarantine: quarantine{noFlush: x.noFlush}})); d != "" {
			t.Errorf("%s, live %t, without a flush %t: %s", x.name, x.feed.journalled, x.noFlush, d)
		}
	}
}

// TestEndOfAStream: its runs end with it, and its account is written. The rows of a file that may be gone do not wait. A recording with a run whose parent may still be read
// stays open for a minute.
func TestEndOfAStream(t *testing.T) {
	for name, x := range map[string]struct {
		live, urgent bool
		parent       string
		silent       time.Duration
		awaited      bool
	}{
		"a file":              {false, false, "", 0, false},
		"a child's file":      {false, false, msg.UnknownRun, 0, false},
		"a recording":         {true, false, "", 0, false},
		"of what may be gone": {true, true, "", 0, false},
		"a child's":           {true, false, msg.UnknownRun, 0, true},
		"of a minute ago":     {true, false, msg.UnknownRun, 2 * awaitParent, false},
	} {
		p, feed := stopped(t, Settings{})
		feed.journalled = x.live
		a := opened(t, p, feed, "k", 0)
		m := said(0, "first")
		m.ParentRun = x.parent
		answered(t, p, a, []frame.Frame{aFrame(0, "")}, wire.Result{Messages: []msg.Message{m}})
		a.touched = time.Now().Add(-x.silent)
		p.core.commits.changed, p.core.commits.urgent = make(map[uint64]*account), x.urgent
		e := &end{ticket{a.stream, 0, 10}, make(chan error, 1)}
		p.inbox.pending.Add(1)
		if err := p.core.take(result{e, new(wire.Result)}); err != nil {
			t.Fatal(err)
		}
		err := <-e.result
		k, open := &p.core.commits, p.core.accounts.of[a.stream] != nil
		if (err == source.ErrAwaited) != x.awaited || (err == nil) == x.awaited || open != x.awaited || a.record.Closed == x.awaited || a.decoderClosed != x.awaited {
			t.Errorf("%s: %v, open %t, closed %t", name, err, open, a.record.Closed)
		}
		if k.changed[a.stream.name] != a || k.urgent != (!x.live || x.urgent) || !a.flushed() {
			t.Errorf("%s: %d accounts are written, urgent %t", name, len(k.changed), k.urgent)
		}
		ended := 0
		if err := k.close(t.Context(), closing{}); err != nil {
			t.Fatal(err)
		}
		if ended = int(p.Progress().Spans); ended == 0 && !x.awaited {
			t.Errorf("%s: no run has ended", name)
		}
	}
}

// TestForgottenStream: the bytes that a decoder read since its last snapshot are lost with a stream that is forgotten; a dead letter counts them.
func TestForgottenStream(t *testing.T) {
	for _, x := range []struct {
		pos   int64 // where its decoder is
		ended bool
		lost  string
	}{{10, false, ""}, {8, false, "2 bytes"}, {8, true, ""}} {
		p, feed := stopped(t, Settings{})
		a := opened(t, p, feed, "k", 10)
		a.ended = x.ended
		f := &forget{end{ticket{a.stream, 0, x.pos}, make(chan error, 1)}}
		p.inbox.pending.Add(1)
		if err := p.core.take(result{f, new(wire.Result)}); err != nil || <-f.result != nil {
			t.Fatal(err)
		}
		rows := p.core.commits.batch.rows
		if lost := len(rows.DeadLetters) == 1 && strings.HasPrefix(rows.DeadLetters[0].Detail, x.lost+" "); lost != (x.lost != "") {
			t.Errorf("%+v: dead letters %+v", x, rows.DeadLetters)
		}
		if k := &p.core.commits; len(k.forgotten) != 1 || k.forgotten[0].Key != "k" || len(k.changed) != 0 || len(rows.Ledger) != 1 || rows.Ledger[0].Read != 10 || len(p.core.accounts.of) != 0 {
			t.Errorf("%+v: %d forgotten, %d changed, accounts %+v", x, len(k.forgotten), len(k.changed), rows.Ledger)
		}
	}
}

// TestResponsesOfAStream: the row of a response is written again when only the end shows whose it was, and one response counts once however often it is marked. It has the sender's span, and
// the span of the model response if that is the only one.
func TestResponsesOfAStream(t *testing.T) {
	p, feed := stopped(t, Settings{Metrics: telemetry.New()})
	x, a := &p.core.accounting, opened(t, p, feed, "k", 0)
	if x.updateResponse(a); a.response != nil || !p.core.commits.empty() {
		t.Error("a row without a response")
	}
	info := source.ResponseInfo{Method: "POST", Status: 200, Traceparent: "00-0af7651916cd43dd8448eb211c803101-b7ad6b7169203331-01"}
	x.setResponse(a, &info)
	if a.response != nil || !p.core.commits.empty() {
		t.Error("a row of a response that goes on")
	}
	info.Timing = &msg.Pace{Start: 7, Total: 5}
	x.setResponse(a, &info)
	x.setResponse(a, &info)
	other := info
	other.Timing = &msg.Pace{Start: 8, Total: 5}
	x.setResponse(a, &other)
	if n := metric(t, p.metrics, "earshot_responses_total"); n != 2 {
		t.Errorf("%v responses are counted", n)
	}
	m := said(0, "answer")
	m.Kind, m.ResponseID = msg.Assistant, "m1"
	answered(t, p, a, []frame.Frame{aFrame(0, "")}, wire.Result{Messages: []msg.Message{m}})
	rows := func() []msg.Stream { return p.core.commits.batch.rows.Streams }
	chat := x.chat(a)
	for i, change := range []func(){
		func() { a.response.Session, a.response.Run, a.response.Chat = "s", "r", chat },
		func() { a.response.Session = "" },
		func() { a.response.Session, a.response.Run = "s", "" },
		func() { a.response.Run, a.response.Chat = "r", msg.SpanID{} },
		func() { a.response.Ver = 0 },
	} {
		if change(); chat.IsZero() {
			t.Fatal("the response has no span")
		}
		was := len(rows())
		x.updateResponse(a)
		if again := i > 0 && i < 4; (len(rows()) == was+1) != again {
			t.Fatalf("%d: %d rows", i, len(rows())-was)
		} else if r := rows()[len(rows())-1]; again && (r.Session != "s" || r.Run != "r" || r.Chat != chat || r.Ver != 14 || r.RemoteSpan.String() != "b7ad6b7169203331" || r.RemoteTrace.IsZero()) {
			t.Errorf("%d: %+v", i, r)
		}
	}
	a.record.Several = true
	if got := x.chat(a); !got.IsZero() {
		t.Errorf("several responses have the span %s", got)
	}
}

// TestTimesAtTheirBounds: the first and the last time that the store receives, and the first that is of a day of its own.
func TestTimesAtTheirBounds(t *testing.T) {
	const read = int64(1_800_000_000e9)
	for i, x := range []struct {
		anchor, time int64
		kept         bool
		days         int
	}{
		{read, firstTime, true, 3}, {read, firstTime - 1, false, 2},
		{read, read + int64(maxAhead), true, 2}, {read, read + int64(maxAhead) + 1, false, 2},
		{read, read - int64(maxAhead), true, 2}, {read, read - int64(maxAhead) - 1, true, 3},
		{firstTime, firstTime + 1, true, 2}, {firstTime - 1, firstTime + 1, true, 3},
		{read, 17000 * 24 * 3600e9, true, 2}, {read, 17001 * 24 * 3600e9, true, 2},
	} {
		rec := checkpoint.Stream{Anchor: x.anchor, Days: []int32{17000, 17001}}
		m := msg.Message{Time: x.time}
		bound(&rec, &m, read)
		if kept := m.Time == x.time; kept != x.kept || len(rec.Days) != x.days {
			t.Errorf("%d: kept %t, %d days", i, kept, len(rec.Days))
		}
	}
	for _, n := range []int{maxDays - 1, maxDays} {
		rec := checkpoint.Stream{Anchor: read, Days: make([]int32, n)}
		m := msg.Message{Time: 17000 * 24 * 3600e9}
		if bound(&rec, &m, read); (m.Time != 0) != (n < maxDays) || len(rec.Days) != maxDays {
			t.Errorf("%d days: %d", n, len(rec.Days))
		}
	}
}

// TestAnswersAreRedacted: each message, with the clean data of its frame, and the error of a decoder that failed.
func TestAnswersAreRedacted(t *testing.T) {
	_, feed := stopped(t, Settings{})
	frames := []frame.Frame{{Data: []byte("clean"), Clean: true}, {Data: []byte("not")}}
	answer := func(f *Feed, cmd command) string {
		r := &wire.Result{Messages: []msg.Message{said(0, "a"), said(1, "b")}, Failure: &wire.Failure{Error: "a secret"}}
		f.redact(cmd, r)
		return fmt.Sprint(r.Messages[0].Title, ", ", r.Messages[1].Title, ", ", r.Failure.Error)
	}
	d := &decode{batch: &frame.Batch{Frames: frames}}
	if got := answer(feed, d); got != ", , a secret" {
		t.Errorf("without a redactor: %s", got)
	}
	feed.SetRedactor(titled{})
	for cmd, want := range map[command]string{d: "redacted beside clean, redacted beside , a ***", &flush{}: "redacted beside , redacted beside , a ***"} {
		if got := answer(feed, cmd); got != want {
			t.Errorf("%T: %s", cmd, got)
		}
	}
	feed.redact(d, &wire.Result{}) // that has not failed
}

// titled is a redactor that reports its arguments.
type titled struct{ hidden }

func (titled) Message(m *msg.Message, clean []byte) { m.Title = "redacted beside " + string(clean) }

// TestLanesAreShared: files are spread over a format's lanes by stream, recordings by source.
func TestLanesAreShared(t *testing.T) {
	p, file := stopped(t, Settings{Lanes: 2})
	var of []*Feed
	for range 3 {
		live, err := p.AddFeed("live", "tenant", "notes", "", true)
		if err != nil {
			t.Fatal(err)
		}
		of = append(of, live)
	}
	if of[0].lane == of[1].lane || of[0].lane != of[2].lane || of[0].laneOf(1) != of[0].laneOf(2) {
		t.Error("two recordings share a lane, and another is free")
	}
	if file.laneOf(1) == file.laneOf(2) || file.laneOf(1) != file.laneOf(3) {
		t.Error("two files share a lane, and another is free")
	}
}

// TestClosedOnce: a stream that is closed takes no more; one that was rewound is not closed, because there is more to deliver.
func TestClosedOnce(t *testing.T) {
	s := &stream{}
	s.cursor.next, s.cursor.high, s.cursor.generation = 5, 10, 3
	if _, open, err := s.close(); err != source.ErrRewound || !open || s.cursor.closed {
		t.Errorf("rewound: %t, %v", open, err)
	}
	s.cursor.next = 10
	called := 0
	at := func(pos int64) {
		s.at(pos, func(to ticket) {
			if called++; to != (ticket{s, 3, 10}) {
				t.Errorf("%+v", to)
			}
		})
	}
	at(9)
	at(10)
	if to, open, err := s.close(); err != nil || !open || to != (ticket{s, 3, 10}) {
		t.Errorf("%+v, %t, %v", to, open, err)
	}
	at(10)
	if _, open, err := s.close(); err != nil || open || called != 1 {
		t.Errorf("closed again: %t, %v; %d commands", open, err, called)
	}
	if err := s.Close(t.Context(), false)(); err != nil {
		t.Errorf("closed again: %v", err)
	}
	s.order.Lock() // it is free
}

// TestAccountsAreDueToTheMoment: the rows of accounts are written when they are too old, or in a pause of half an interval; that of an earlier process only of a stream that is not open.
func TestAccountsAreDueToTheMoment(t *testing.T) {
	now := time.Now()
	for i, x := range []struct {
		written, changed time.Duration // ago
		want             bool
	}{{ledgerEvery, 0, true}, {ledgerEvery - 1, 0, false}, {0, time.Second, true}, {0, time.Second - 1, false}} {
		l := ledgers{pending: map[uint64]*account{1: {}}, written: now.Add(-x.written), changed: now.Add(-x.changed)}
		if got := l.due(now, 2*time.Second); got != x.want {
			t.Errorf("%d: due %t", i, got)
		}
	}
	p, feed := stopped(t, Settings{})
	opened(t, p, feed, "open", 10)
	for i, key := range []string{"open", "ended", "ended"} {
		p.core.resumeLedger(feed, checkpoint.Stream{Source: "source", Key: key, Pos: int64(i)})
	}
	if pending := p.core.commits.ledgers.pending; len(pending) != 1 || pending[nameOf("source", "ended")].record.Pos != 1 {
		t.Errorf("rows of earlier processes: %v", pending)
	}
}

// TestCallsOfBefore: the core makes the calls that were posted before it runs first, once.
func TestCallsOfBefore(t *testing.T) {
	p, _ := stopped(t, Settings{})
	calls := make(chan int, 9)
	for i := range 2 {
		p.inbox.post(func(*core) { calls <- i })
	}
	if len(calls) > 0 {
		t.Error("called before the core runs")
	}
	ended := begun(t, p)
	p.inbox.post(func(*core) { calls <- 2 })
	for want := range 3 {
		if got := <-calls; got != want {
			t.Errorf("call %d, want %d", got, want)
		}
	}
	ended()
	p.inbox.post(func(*core) { t.Error("called after its end") })
	if len(calls) > 0 {
		t.Error("called twice")
	}
}
