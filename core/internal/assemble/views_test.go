package assemble_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/assemble"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/semconv"
	"github.com/earshot-dev/earshot/plugins/a2a"
	"github.com/earshot-dev/earshot/plugins/acp"
	anthropicsse "github.com/earshot-dev/earshot/plugins/anthropic-sse"
	claudecode "github.com/earshot-dev/earshot/plugins/claude-code"
	claudecodeotel "github.com/earshot-dev/earshot/plugins/claude-code-otel"
	claudestream "github.com/earshot-dev/earshot/plugins/claude-stream"
	"github.com/earshot-dev/earshot/plugins/codex"
	codexappserver "github.com/earshot-dev/earshot/plugins/codex-app-server"
	codexexec "github.com/earshot-dev/earshot/plugins/codex-exec"
	codexotel "github.com/earshot-dev/earshot/plugins/codex-otel"
	"github.com/earshot-dev/earshot/plugins/copilot"
	copilototel "github.com/earshot-dev/earshot/plugins/copilot-otel"
	geminiapi "github.com/earshot-dev/earshot/plugins/gemini-api"
	geminicli "github.com/earshot-dev/earshot/plugins/gemini-cli"
	geminiotel "github.com/earshot-dev/earshot/plugins/gemini-otel"
	"github.com/earshot-dev/earshot/plugins/mcp"
	openairesponses "github.com/earshot-dev/earshot/plugins/openai-responses"
)

var decoders = map[string]decoder.Factory{
	"claude-code": claudecode.New(), "claude-code-otel": claudecodeotel.New(), "anthropic-sse": anthropicsse.New(), "claude-stream": claudestream.New(),
	"codex-exec": codexexec.New(), "codex-app-server": codexappserver.New(), "codex-otel": codexotel.New(), "openai-responses": openairesponses.New(), "gemini-cli": geminicli.New(),
	"gemini-otel": geminiotel.New(), "gemini-api": geminiapi.New(), "copilot": copilot.New(), "copilot-otel": copilototel.New(),
	"mcp": mcp.New(), "a2a": a2a.New(), "acp": acp.New(), "codex": codex.New(),
}

// recording is one stream of a view.
type recording struct {
	format, origin string
	frames         []frame.Frame
}

// reader reads recordings in any order into tables: of each row the version that the store
// has as valid. It goes on from the committed state when it is restarted.
type reader struct {
	t        testing.TB
	a        *assemble.Assembler
	state    map[string][]byte
	open     map[string]bool // groups
	streams  []*open
	replays  []replayed
	messages map[string]msg.Message
	spans    map[string]msg.Span
	found    map[string]int
	several  bool          // views are merged
	former   bool          // as an earlier build, which knew no families
	renamed  bool          // as a backfill
	late     time.Duration // after the times of the messages that they are read
	hops     assemble.Hops // that are read
	begun    []int64       // by stream
}

type open struct {
	recording
	decoder decoder.Decoder
	read    int
}

type replayed struct {
	stream uint64
	run    assemble.RunRef
}

func newReader(t testing.TB, list []recording) *reader {
	r := &reader{t: t, state: map[string][]byte{}, open: map[string]bool{}, messages: map[string]msg.Message{}, spans: map[string]msg.Span{}, found: map[string]int{}, several: true, hops: assemble.Hops{Calls: true, Texts: true, Turns: true}}
	for _, rec := range list {
		r.streams = append(r.streams, &open{recording: rec, decoder: r.fresh(rec)})
	}
	r.start()
	return r
}

func (r *reader) fresh(rec recording) decoder.Decoder {
	d, err := decoders[rec.format].New(decoder.Stream{Origin: rec.origin, Source: "s"})
	if err != nil {
		r.t.Fatal(err)
	}
	return d
}

func (r *reader) start() {
	r.a = assemble.New(assemble.Settings{
		Replay: len(r.state) > 0, LocalIDs: func(f string) bool { return f != "" && decoders[f].Info().LocalIDs },
		View: func(f string) (v assemble.View) {
			if v.Family, v.Rank, v.Measures, v.OwnNames = semconv.View(f); r.former {
				v = assemble.View{}
			}
			return v
		},
		Reconciles: func(string) bool { return r.several }, Renamed: r.renamed,
		Hops: func(f string) (h assemble.Hops) {
			h.Calls, h.Texts, h.Turns = semconv.Hops(f)
			return h
		},
		Read: r.hops, Unique: semconv.Unique, Begun: func(stream uint64) int64 {
			if len(r.begun) == 0 {
				return 0
			}
			return r.begun[stream-1]
		},
	}, r, r)
	for key, open := range r.open {
		if open {
			if err := r.a.Resume(key, time.Unix(0, 0)); err != nil {
				r.t.Fatal(err)
			}
		}
	}
}

func (r *reader) commit() {
	if err := r.a.Commit(func(key string, open bool, b []byte) { r.state[key], r.open[key] = b, open }); err != nil {
		r.t.Fatal(err)
	}
}

// next reads a frame of a stream.
func (r *reader) next(stream int) (more bool) {
	s := r.streams[stream]
	if s.read == len(s.frames) {
		return false
	}
	r.frame(s, s.decoder, stream, s.read, "")
	s.read++
	r.replay()
	return true
}

// replay decodes the streams again that the assembler asked for.
func (r *reader) replay() {
	for len(r.replays) > 0 {
		p := r.replays[0]
		r.replays = r.replays[1:]
		again := r.streams[p.stream-1]
		if err := r.a.ResetRun(p.run); err != nil {
			r.t.Fatal(err)
		}
		d := r.fresh(again.recording)
		for i := range again.read {
			r.frame(again, d, int(p.stream-1), i, p.run.Named(p.stream))
		}
	}
}

// frame decodes a frame, and applies the messages of the run; of all if it is empty.
func (r *reader) frame(s *open, d decoder.Decoder, stream, n int, run string) {
	var out decoder.Output
	if err := d.Decode(&s.frames[n], &out); err != nil {
		r.t.Fatal(err)
	}
	if len(out.Problems) > 0 {
		r.t.Fatalf("%s: %+v", s.format, out.Problems)
	}
	for i := range out.Messages {
		if m := &out.Messages[i]; run == "" || m.Run == run {
			r.apply(s, m, stream, n, r.a.Apply)
		}
	}
}

func (r *reader) apply(s *open, m *msg.Message, stream, n int, apply func(*msg.Message, uint64, uint32, time.Time, int64) (int64, error)) {
	if m.Time == 0 {
		m.Time, m.Precision = s.frames[n].At, msg.Inferred
	}
	m.Host = msg.Host{Tenant: "default", Source: s.format, Format: s.format, Ver: uint64(n + 1)}
	was, err := apply(m, uint64(stream+1), r.revision(s.format), time.Unix(0, m.Time).Add(r.late), m.Time)
	if err != nil {
		r.t.Fatal(err)
	}
	if was != 0 {
		gone := *m
		gone.Time, gone.Host.Tombstone = was, true
		r.store(gone)
	}
	r.store(*m)
}

// revision is the decoder's; that of an earlier build was lower.
func (r *reader) revision(format string) uint32 {
	if r.former {
		return decoders[format].Info().Revision - 1
	}
	return decoders[format].Info().Revision
}

// place is the sort key of a row.
func place(at int64, session, id string) string {
	return fmt.Sprintf("%d %s %s", at/int64(time.Hour), session, id)
}

// spanVersion is the column ver of a span.
func spanVersion(s *msg.Span) uint64 {
	v := s.Ver
	if s.State != msg.SpanClosed && v&(1<<55) == 0 {
		v = v&(0xff<<56) | v&(1<<54-1)<<1
		if s.State == msg.SpanIdle {
			v |= 1
		}
	}
	return version(v, s.Tombstone)
}

// version is the column ver of a message.
func version(ver uint64, tombstone bool) uint64 {
	if tombstone {
		return max(ver, 1) - 1
	}
	return ver
}

// Message takes a row that the assembler takes back or emits again.
func (r *reader) Message(m msg.Message) {
	if m.Host.Tombstone && (!m.Content.IsZero() || !m.Tool.Arguments.IsZero() || !m.Delegation.Task.IsZero() || len(m.Attrs) > 0) {
		r.t.Errorf("the row that takes back %s has its content", m.Key)
	}
	r.store(m)
}

func (r *reader) store(m msg.Message) {
	m.Content = msg.Plain(m.Content.String())
	key := place(m.Time, m.Session, m.Host.ID.String())
	if old, ok := r.messages[key]; !ok || version(m.Host.Ver, m.Host.Tombstone) >= version(old.Host.Ver, old.Host.Tombstone) {
		r.messages[key] = m
	}
}

func (r *reader) Span(s msg.Span) {
	key := place(s.Start, s.Session, s.ID.String())
	if old, ok := r.spans[key]; !ok || spanVersion(&s) >= spanVersion(&old) {
		r.spans[key] = s
	}
}

func (r *reader) Group(key string) ([]byte, error) { return r.state[key], nil }
func (r *reader) ReplayChildren(stream uint64, run assemble.RunRef) {
	r.replays = append(r.replays, replayed{stream, run})
}
func (r *reader) Replayable(uint64) bool { return true }
func (r *reader) Verdict(msg.Verdict)    {}
func (r *reader) Flush(uint64)           {}
func (r *reader) Finding(_, kind string) { r.found[kind]++ }

// end flushes the decoders, and ends the open runs and calls.
func (r *reader) end() {
	for i, s := range r.streams {
		var out decoder.Output
		if err := s.decoder.Flush(&out); err != nil {
			r.t.Fatal(err)
		}
		for k := range out.Messages {
			r.apply(s, &out.Messages[k], i, len(s.frames)-1, r.a.ApplyOpen)
		}
	}
	r.replay()
	if err := r.a.Finish(); err != nil {
		r.t.Fatal(err)
	}
	r.commit()
}

// valid are the rows that a reader of the tables sees.
func (r *reader) valid() (messages []msg.Message, spans []msg.Span) {
	for _, m := range r.messages {
		if !m.Host.Tombstone {
			messages = append(messages, m)
		}
	}
	for _, s := range r.spans {
		if !s.Tombstone {
			spans = append(spans, s)
		}
	}
	slices.SortFunc(messages, func(a, b msg.Message) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Host.ID.String(), b.Host.ID.String()))
	})
	slices.SortFunc(spans, func(a, b msg.Span) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID.String(), b.ID.String()))
	})
	return messages, spans
}

func (r *reader) tokens() (byMessage, byChat msg.Tokens) {
	messages, spans := r.valid()
	for _, m := range messages {
		byMessage = byMessage.Add(m.Usage)
	}
	for _, s := range spans {
		if s.Kind == msg.SpanChat {
			byChat = byChat.Add(s.Usage)
		}
	}
	byMessage.Provenance, byChat.Provenance = 0, 0
	return byMessage, byChat
}

// conversation has the messages that a person reads, without the facts of some views only.
func (r *reader) conversation() string {
	var b strings.Builder
	messages, _ := r.valid()
	for _, m := range messages {
		if !m.Hidden {
			fmt.Fprintf(&b, "%s %s %s %s %s\n", m.Run, m.Kind, m.Tool.CallID, m.Tool.Name, m.Content)
		}
	}
	return b.String()
}

// tree is the tree of spans; bare is without tokens.
func (r *reader) tree(bare bool) string {
	_, spans := r.valid()
	children := map[msg.SpanID][]msg.Span{}
	ids := map[msg.SpanID]bool{}
	for _, s := range spans {
		ids[s.ID] = true
	}
	for _, s := range spans {
		if !ids[s.Parent] && !s.Parent.IsZero() {
			r.t.Errorf("%s %s %s is below no span", s.Format, s.Kind, s.ID)
		}
		children[s.Parent] = append(children[s.Parent], s)
	}
	var draw func(id msg.SpanID, depth int) string
	draw = func(id msg.SpanID, depth int) string {
		var list []string // in no order of time, which views measure differently
		for _, s := range children[id] {
			tokens := fmt.Sprint(s.Usage.Total())
			if bare {
				tokens = "-"
			}
			list = append(list, fmt.Sprintf("%s%s %s %s %s tokens %s\n%s", strings.Repeat("  ", depth), s.Kind, s.TraceID, s.Run, s.Tool.CallID, tokens, draw(s.ID, depth+1)))
		}
		slices.Sort(list)
		return strings.Join(list, "")
	}
	return draw(msg.SpanID{}, 0)
}

// all is every valid row with everything that does not depend on when it was read.
func (r *reader) all() string {
	var b strings.Builder
	messages, spans := r.valid()
	for _, m := range messages {
		m.Host.Ver, m.Host.Seq = 0, 0
		fmt.Fprintf(&b, "%+v\n", m.Row())
	}
	for _, s := range spans {
		s.Ver, s.Shown, s.Amends, s.Alive = 0, false, false, 0
		fmt.Fprintf(&b, "%+v\n", s)
	}
	return b.String()
}

// orders calls f with reading orders of recordings: each permutation of the views, and
// random interleavings; the reader is restarted on the way.
func orders(t *testing.T, list []recording, f func(name string, r *reader)) {
	var views []string
	for _, rec := range list {
		if !slices.Contains(views, rec.format) {
			views = append(views, rec.format)
		}
	}
	permute(views, func(order []string) {
		r := newReader(t, list)
		for _, v := range order {
			for i, s := range r.streams {
				for s.format == v && r.next(i) {
				}
			}
			r.commit()
			r.start()
		}
		r.end()
		f(strings.Join(order, " > "), r)
	})
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 1))
		r, done := newReader(t, list), make(map[int]bool)
		for left := len(list); left > 0; {
			i := random.IntN(len(list))
			for k, s := range r.streams { // exchanges follow each other: each repeats those before
				if s.frames[0].Kind == frame.Request && list[i].format == s.format && s.read < len(s.frames) {
					i = k
					break
				}
			}
			if r.next(i); r.streams[i].read == len(list[i].frames) && !done[i] {
				done[i] = true
				left--
			}
			r.jolt(random)
		}
		r.end()
		f(fmt.Sprint("interleaved ", seed), r)
	}
}

// jolt commits now and then, and starts again more rarely.
func (r *reader) jolt(random *rand.Rand) {
	restarts := random.IntN(12) == 0
	if restarts || random.IntN(4) == 0 {
		r.commit()
	}
	if restarts {
		r.start()
	}
}

func permute(list []string, f func([]string)) {
	sort.Strings(list)
	var walk func(n int)
	walk = func(n int) {
		if n == len(list) {
			f(list)
			return
		}
		for i := n; i < len(list); i++ {
			list[n], list[i] = list[i], list[n]
			walk(n + 1)
			list[n], list[i] = list[i], list[n]
		}
	}
	walk(0)
}

// TestViewsAreOneConversation reads recorded runs of which several views exist: each subset of the
// views, in each order, interleaved and restarted. The rows follow from the subset alone; with
// the transcript in it the conversation, the tree and the tokens are those of the transcript.
func TestViewsAreOneConversation(t *testing.T) {
	for name, run := range recordedRuns() {
		t.Run(name, func(t *testing.T) {
			whole := newReader(t, slices.DeleteFunc(slices.Clone(run.views), func(v recording) bool { return v.format != run.whole }))
			for i := range whole.streams {
				for whole.next(i) {
				}
			}
			whole.end()
			var formats []string
			for _, v := range run.views {
				if !slices.Contains(formats, v.format) {
					formats = append(formats, v.format)
				}
			}
			for set := 1; set < 1<<len(formats); set++ {
				list := slices.DeleteFunc(slices.Clone(run.views), func(v recording) bool { return set&(1<<slices.Index(formats, v.format)) == 0 })
				first, firstName := "", ""
				orders(t, list, func(order string, r *reader) {
					byMessage, byChat := r.tokens()
					wantMessage, wantChat := whole.tokens()
					logs := slices.ContainsFunc(list, func(v recording) bool { return v.format == "claude-code-otel" && v.origin == "otlp" }) // they have costs
					if logs != (byMessage.Stated > 0) {
						t.Errorf("%s: %d picodollars are stated", order, byMessage.Stated)
					}
					wantMessage.Stated, wantChat.Stated = byMessage.Stated, byMessage.Stated // the same in messages and in chats
					if byMessage != wantMessage || byChat != wantChat && !run.totals {
						t.Errorf("%s: tokens %+v, of chats %+v, want %+v", order, byMessage, byChat, wantMessage)
					}
					if set&(1<<slices.Index(formats, run.whole)) != 0 {
						if got, want := r.conversation(), whole.conversation(); got != want {
							t.Fatalf("%s:\n%s\nwant\n%s", order, got, want)
						}
						if got, want := r.tree(run.totals), whole.tree(run.totals); got != want {
							t.Fatalf("%s:\n%s\nwant\n%s", order, got, want)
						}
					}
					if r.found["view_conflict"] > 0 {
						t.Errorf("%s: %d conflicts", order, r.found["view_conflict"])
					}
					r.checkSeen(order, set&(set-1) != 0)
					if all := r.all(); first == "" {
						first, firstName = all, order
					} else if all != first {
						t.Fatalf("%s and %s differ:\n%s", firstName, order, difference(first, all))
					}
				})
			}
		})
	}
}

// TestMessagesAreSeenBy has the messages of a turn with the views that have each, where they are several.
func TestMessagesAreSeenBy(t *testing.T) {
	orders(t, recordedRuns()["claude code: a sub-agent"].views, func(order string, r *reader) {
		messages, spans := r.valid()
		by := make(map[msg.ID]string)
		for _, s := range spans {
			for _, m := range s.Seen.Messages {
				by[m.ID] = strings.Join(m.By, ", ")
			}
		}
		got := ""
		for _, m := range messages {
			if !m.Hidden || m.Kind == msg.Usage {
				got += fmt.Sprintf("%s: %s\n", m.Kind, by[m.Host.ID])
			}
		}
		const all = "claude-code, anthropic-sse, claude-code-otel"
		const want = "user: " + all + "\ndelegation: " + all + "\nusage: " + all + "\nuser: claude-code, anthropic-sse\nusage: " + all + "\ntool_call: " + all + "\ntool_result: " + all +
			"\nassistant: " + all + "\nusage: " + all + "\ndelegation_result: " + all + "\nassistant: " + all + "\nusage: " + all + "\n"
		if got != want {
			t.Errorf("%s:\n%s\nwant\n%s", order, got, want)
		}
	})
}

// checkSeen compares the messages of which spans have the provenance with the rows: each is there, and is of the format that is named first.
func (r *reader) checkSeen(order string, several bool) {
	messages, spans := r.valid()
	rows := make(map[msg.ID]string)
	for _, m := range messages {
		rows[m.Host.ID] = m.Host.Format
	}
	for _, s := range spans {
		for _, m := range s.Seen.Messages {
			if format, ok := rows[m.ID]; !ok || format != m.By[0] || len(m.By) < 2 || !several {
				r.t.Errorf("%s: a %s of %q has a message of %q, seen by %q", order, s.Kind, s.Seen.By, format, m.By)
			}
		}
	}
}

// conflicts are the counts on which the views of the valid spans differ.
func (r *reader) conflicts() (out []string) {
	_, spans := r.valid()
	for _, s := range spans {
		if s.Seen.Conflict != "" {
			out = append(out, s.Seen.Conflict)
		}
	}
	return out
}

// TestViewsThatDiffer: counts on which two views differ are those of the transcript, counted as one conflict
// and kept with the span; a transcript's lower bound is no conflict.
func TestViewsThatDiffer(t *testing.T) {
	s := story{session: "5e55aaaa-0000-4000-8000-0000000000cc", start: time.Date(2026, 3, 3, 6, 10, 0, 0, time.UTC), turns: []turn{
		{prompt: "d00d000c-0000-4000-8000-000000000001", text: "Trim the lamp", at: 1, end: 9, steps: []step{{request: "req_lamp_0c", id: "msg_lamp_0c", from: 1, to: 3, text: "I look.", in: 12, out: 40}}},
	}}
	transcript := s.transcript()
	s.turns[0].steps[0].out = 44
	orders(t, slices.Concat(transcript, s.logs()), func(order string, r *reader) {
		byMessage, byChat := r.tokens()
		if want := (msg.Tokens{Input: 12, Output: 40, Stated: 4_000_000_000}); byMessage != want || byChat != want {
			t.Errorf("%s: tokens %+v, of chats %+v, want %+v", order, byMessage, byChat, want)
		}
		conflicts := r.conflicts()
		if want := []string{"claude-code 12/40/0/0, claude-code-otel 12/44/0/0"}; !slices.Equal(conflicts, want) || r.found["view_conflict"] != 1 {
			t.Errorf("%s: conflicts %q, %d counted, want %q, one", order, conflicts, r.found["view_conflict"], want)
		}
	})
	for i := range transcript[0].frames {
		f := &transcript[0].frames[i]
		f.Data = []byte(strings.Replace(string(f.Data), `"stop_reason":"end_turn"`, `"stop_reason":null`, 1))
	}
	orders(t, slices.Concat(transcript, s.logs()), func(order string, r *reader) {
		byMessage, byChat := r.tokens()
		if want := (msg.Tokens{Input: 12, Output: 44, Stated: 4_000_000_000}); byMessage != want || byChat != want || r.found["view_conflict"] > 0 {
			t.Errorf("%s: tokens %+v, of chats %+v, %d conflicts, want %+v and none", order, byMessage, byChat, r.found["view_conflict"], want)
		}
	})
}

// TestLeadingViewThatDiffers: a rollout and the traffic with the provider count a response differently: the rollout leads, and the
// difference is counted once and kept with the span. Facts of the traffic alone, as a request for
// a title, are not shown beside it.
func TestLeadingViewThatDiffers(t *testing.T) {
	s := story{session: "5e55aaaa-0000-4000-8000-0000000000cd", start: time.Date(2026, 3, 3, 6, 10, 0, 0, time.UTC), turns: []turn{
		{prompt: "d00d000d-0000-4000-8000-000000000001", text: "Trim the lamp", at: 1, end: 9, steps: []step{{id: "lamp_0d", from: 1, to: 3, text: "I look.", in: 12, out: 40}}},
	}}
	rollout := s.rollout(true)
	s.turns[0].steps[0].out = 44
	s.turns = append(s.turns, turn{prompt: "d00d000d-0000-4000-8000-000000000002", text: "Name this", at: 4, end: 5, steps: []step{{id: "title_0d", from: 4, to: 5, text: "Lamp", in: 7, out: 1}}})
	orders(t, slices.Concat(rollout, s.responses(true)), func(order string, r *reader) {
		byMessage, byChat := r.tokens()
		if want := (msg.Tokens{Input: 12, Output: 40}); byMessage != want || byChat != want {
			t.Errorf("%s: tokens %+v, of chats %+v, want %+v", order, byMessage, byChat, want)
		}
		conflicts := r.conflicts()
		if want := []string{"codex 12/40/0/0, openai-responses 12/44/0/0"}; !slices.Equal(conflicts, want) || r.found["view_conflict"] != 1 {
			t.Errorf("%s: conflicts %q, %d counted, want %q, one", order, conflicts, r.found["view_conflict"], want)
		}
		if got := r.conversation(); strings.Contains(got, "Name this") || !strings.Contains(got, "I look.") {
			t.Errorf("%s: %s", order, got)
		}
	})
}

// provenance has the formats of the numbers of the responses and calls of the valid spans, in the order of their starts.
func (r *reader) provenance() string {
	_, spans := r.valid()
	var b strings.Builder
	for _, s := range spans {
		if s.Kind != msg.SpanRun {
			fmt.Fprintf(&b, "%s %s%s: %s; tokens %q times %q outcome %q first token %q\n", s.Kind, s.ResponseID, s.Tool.CallID, strings.Join(s.Seen.By, ", "), s.Seen.Tokens, s.Seen.Times, s.Seen.Outcome, s.Seen.FirstToken)
		}
	}
	return b.String()
}

// TestNumbersAreOfViews has, of a run that a transcript, a tap and telemetry show, the view that each number is of: tokens are the
// transcript's, times and the first token those of the view that knows when the request left. The second part is a transcript that ends in a
// response, whose end and outcome, and those of its call, are the telemetry's.
func TestNumbersAreOfViews(t *testing.T) {
	s := story{session: "5e55aaaa-0000-4000-8000-0000000000ce", start: time.Date(2026, 3, 3, 6, 10, 0, 0, time.UTC), turns: []turn{
		{prompt: "d00d000e-0000-4000-8000-000000000001", text: "Trim the lamp", at: 1, end: 9, steps: []step{
			{request: "req_lamp_0e", id: "msg_lamp_0e", from: 1.5, to: 3, text: "I look.", in: 12, out: 40, calls: []toolCall{
				{id: "toolu_lamp_0e", tool: "Read", args: `{"file_path":"/lamp/log"}`, result: "none", from: 3.2, to: 4, failed: true},
			}},
		}},
	}}
	for name, c := range map[string]struct {
		views []recording
		want  string
	}{
		"whole": {slices.Concat(s.transcript(), s.tap(), s.logs()), "chat msg_lamp_0e: claude-code, anthropic-sse, claude-code-otel; tokens \"claude-code\" times \"anthropic-sse\" outcome \"\" first token \"anthropic-sse\"\n" +
			"tool toolu_lamp_0e: claude-code, anthropic-sse, claude-code-otel; tokens \"\" times \"\" outcome \"\" first token \"\"\n"},
		"cut": {slices.Concat(cut(s.transcript(), 3), s.logs()), "chat msg_lamp_0e: claude-code, claude-code-otel; tokens \"claude-code\" times \"claude-code-otel\" outcome \"claude-code-otel\" first token \"claude-code-otel\"\n" +
			"tool toolu_lamp_0e: claude-code, claude-code-otel; tokens \"\" times \"\" outcome \"claude-code-otel\" first token \"\"\n"},
	} {
		orders(t, c.views, func(order string, r *reader) {
			if got := r.provenance(); got != c.want {
				t.Errorf("%s, %s:\n%s\nwant\n%s", name, order, got, c.want)
			}
		})
	}
}

// cut are the first frames of the first recording, and the others.
func cut(list []recording, frames int) []recording {
	list = slices.Clone(list)
	list[0].frames = list[0].frames[:frames]
	return list
}

// TestOutcomesThatDiffer: a call that failed in one view and is ok in another has failed, in any order: ok is what a view has that shows
// no failures. It is no conflict, and the span names the view of the failure where that is not the strongest one.
func TestOutcomesThatDiffer(t *testing.T) {
	s := story{session: "5e55aaaa-0000-4000-8000-0000000000cf", start: time.Date(2026, 3, 3, 6, 10, 0, 0, time.UTC), turns: []turn{
		{prompt: "d00d000f-0000-4000-8000-000000000001", text: "Trim the lamp", at: 1, end: 9, steps: []step{
			{request: "req_lamp_0f", id: "msg_lamp_0f", from: 1.5, to: 3, in: 12, out: 40, calls: []toolCall{
				{id: "toolu_lamp_0f", tool: "Read", args: `{"file_path":"/lamp/log"}`, result: "none", from: 3.2, to: 4, failed: true},
			}},
		}},
	}}
	failedTranscript, failedLogs := s.transcript(), s.logs()
	s.turns[0].steps[0].calls[0].failed = false
	for _, c := range []struct {
		name  string
		views []recording
		from  string
	}{
		{"in the transcript", slices.Concat(failedTranscript, s.logs()), ""},
		{"in the telemetry", slices.Concat(s.transcript(), failedLogs), "claude-code-otel"},
	} {
		orders(t, c.views, func(order string, r *reader) {
			if r.found["view_conflict"] != 0 {
				t.Errorf("%s, %s: conflicts %q", c.name, order, r.conflicts())
			}
			_, spans := r.valid()
			for _, s := range spans {
				if s.Kind == msg.SpanTool && (s.Outcome != msg.OutcomeError || s.Seen.Outcome != c.from) {
					t.Errorf("%s, %s: the call is %s, of %q", c.name, order, s.Outcome, s.Seen.Outcome)
				}
			}
		})
	}
}

// rowsOf are the valid rows, with the views that each has.
func rowsOf(t *testing.T, list []recording, check func(order string, r *reader)) {
	t.Helper()
	first, firstName := "", ""
	orders(t, list, func(order string, r *reader) {
		r.checkSeen(order, true)
		check(order, r)
		if all := r.all(); first == "" {
			first, firstName = all, order
		} else if all != first {
			t.Fatalf("%s and %s differ:\n%s", firstName, order, difference(first, all))
		}
	})
}

// TestTruncatedViews cuts each view of recorded runs in its middle: the rows of what is left follow from it alone, in any order of
// reading, and no token counts twice.
func TestTruncatedViews(t *testing.T) {
	for _, name := range []string{"claude code: across an hour", "codex: a tool", "gemini: a tool"} {
		run := recordedRuns()[name]
		t.Run(name, func(t *testing.T) {
			whole := newReader(t, run.views)
			for i := range whole.streams {
				for whole.next(i) {
				}
			}
			whole.end()
			most, _ := whole.tokens()
			for i, view := range run.views {
				list, n := slices.Clone(run.views), (len(view.frames)+1)/2
				list[i].frames = view.frames[:n]
				rowsOf(t, list, func(order string, r *reader) {
					if byMessage, byChat := r.tokens(); byMessage != byChat || byMessage.Total() > most.Total() {
						t.Errorf("%s, %s cut after %d frames: tokens %+v, of chats %+v, and whole %+v", order, view.format, n, byMessage, byChat, most)
					}
				})
			}
		})
	}
}

// TestViewsHoursApart reads the views of recorded runs nine hours after one another, in each order: between two of them silence ends what has no
// end yet, the sessions leave the memory, and the sidecar starts again. The rows are those of views that are read at once.
func TestViewsHoursApart(t *testing.T) {
	for _, name := range []string{"claude code: a sub-agent", "claude code: across an hour", "codex: a tool", "gemini: a tool", "copilot: a tool"} {
		run := recordedRuns()[name]
		t.Run(name, func(t *testing.T) {
			var views []string
			atOnce := newReader(t, run.views)
			for i, s := range atOnce.streams {
				for atOnce.next(i) {
				}
				if !slices.Contains(views, s.format) {
					views = append(views, s.format)
				}
			}
			atOnce.end()
			permute(views, func(order []string) {
				r := newReader(t, run.views)
				for _, v := range order {
					for i, s := range r.streams {
						for s.format == v && r.next(i) {
						}
					}
					r.late += 9 * time.Hour
					r.commit()
					for range 3 { // what has ended is committed, and dropped
						if err := r.a.Idle(time.Date(2026, 3, 3, 9, 0, 0, 0, time.UTC).Add(r.late), 1); err != nil {
							t.Fatal(err)
						}
						r.commit()
					}
					r.start()
				}
				r.end()
				if got, want := r.all(), atOnce.all(); got != want {
					t.Fatalf("%s:\n%s", strings.Join(order, " > "), difference(want, got))
				}
			})
		})
	}
}

// TestSessionsWithTheSameCalls: two sessions that have calls, responses and turns of the same ids, as a copied transcript has, each seen
// by three views, are two conversations: each has its own rows.
func TestSessionsWithTheSameCalls(t *testing.T) {
	one := story{session: "5e55aaaa-0000-4000-8000-0000000000d1", start: time.Date(2026, 3, 3, 6, 10, 0, 0, time.UTC), turns: []turn{
		{prompt: "d00d0010-0000-4000-8000-000000000001", text: "Trim the lamp", at: 1, end: 9, steps: []step{
			{request: "req_lamp_10", id: "msg_lamp_10", from: 1.5, to: 3, in: 12, out: 40, calls: []toolCall{
				{id: "toolu_lamp_10", tool: "Read", args: `{"file_path":"/lamp/log"}`, result: "wick: 3 mm", from: 3.2, to: 4},
			}},
			{request: "req_lamp_11", id: "msg_lamp_11", from: 4.6, to: 8, text: "It is trimmed.", in: 9, out: 21},
		}},
	}}
	two := one
	two.session, two.start = "5e55aaaa-0000-4000-8000-0000000000d2", one.start.Add(5*time.Hour)
	views := func(s *story) []recording { return slices.Concat(s.transcript(), s.logs(), s.tap()) }
	tree := func(s *story) (string, msg.Tokens) {
		r := newReader(t, views(s))
		for i := range r.streams {
			for r.next(i) {
			}
		}
		r.end()
		tokens, _ := r.tokens()
		return r.tree(false), tokens
	}
	first, tokens := tree(&one)
	second, _ := tree(&two)
	both := tokens.Add(tokens)
	rowsOf(t, slices.Concat(views(&one), views(&two)), func(order string, r *reader) {
		if got := r.tree(false); got != first+second && got != second+first {
			t.Errorf("%s:\n%s\nwant\n%s%s", order, got, first, second)
		}
		if byMessage, byChat := r.tokens(); byMessage != both || byChat != both {
			t.Errorf("%s: tokens %+v, of chats %+v, want %+v", order, byMessage, byChat, both)
		}
	})
}

// TestViewsOfBefore: sessions that an earlier build stored, without families, are one conversation
// after a backfill: the rows of before are taken back.
func TestViewsOfBefore(t *testing.T) {
	run := recordedRuns()["claude code: a sub-agent"]
	r := newReader(t, run.views)
	r.former = true
	r.start()
	for i := range r.streams {
		for r.next(i) {
		}
	}
	r.end()
	again := newReader(t, run.views)
	again.messages, again.spans, again.renamed = r.messages, r.spans, true
	again.start()
	for i := range again.streams {
		for again.next(i) {
		}
	}
	again.end()
	fresh := newReader(t, run.views)
	for i := range fresh.streams {
		for fresh.next(i) {
		}
	}
	fresh.end()
	if got, want := again.all(), fresh.all(); got != want {
		t.Errorf("after a backfill, and in an empty store:\n%.2000s", difference(want, got))
	}
}

// BenchmarkViews reads a transcript of 2,000 responses: as the only view of its family, and as one of
// several, whose facts are remembered; then a view that leads, and one that waits for a stronger one.
func BenchmarkViews(b *testing.B) {
	s := story{session: "5e55aaaa-0000-4000-8000-0000000000bb", start: time.Date(2026, 3, 3, 6, 10, 0, 0, time.UTC)}
	for i := range 500 {
		t := turn{prompt: fmt.Sprint("prompt-", i), text: "Trim the lamp", at: float64(i * 60), end: float64(i*60 + 50)}
		for k := range 4 {
			n, at := fmt.Sprintf("%d_%d", i, k), t.at+float64(k*10)
			t.steps = append(t.steps, step{request: "req_" + n, id: "msg_" + n, from: at + 1, to: at + 5, text: "I look.", in: 12, out: 40, calls: []toolCall{
				{id: "toolu_" + n, tool: "Read", args: `{"file_path":"/lamp/log"}`, result: "wick: 3 mm", from: at + 5, to: at + 6},
			}})
		}
		s.turns = append(s.turns, t)
	}
	b.Run("leading", func(b *testing.B) { benchmarkViews(b, s.rollout(true), true) })
	b.Run("below", func(b *testing.B) { benchmarkViews(b, s.codexLogs(), true) })
	list := s.transcript()
	for name, several := range map[string]bool{"alone": false, "merged": true} {
		b.Run(name, func(b *testing.B) { benchmarkViews(b, list, several) })
	}
}

func benchmarkViews(b *testing.B, list []recording, several bool) {
	for b.Loop() {
		r := newReader(b, list)
		r.several = several
		r.start()
		for n := 1; r.next(0); n++ {
			if n%1000 == 0 {
				r.commit()
			}
		}
		r.end()
	}
}

// difference is the lines that one of two texts has and the other has not.
func difference(a, b string) string {
	la, lb := strings.Split(a, "\n"), strings.Split(b, "\n")
	var out strings.Builder
	for _, l := range la {
		if !slices.Contains(lb, l) {
			out.WriteString("- " + l + "\n")
		}
	}
	for _, l := range lb {
		if !slices.Contains(la, l) {
			out.WriteString("+ " + l + "\n")
		}
	}
	return out.String()
}
