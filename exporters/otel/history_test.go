package otel

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/semconv"
)

// TestHistoriesAreOfTheLastMessages exports messages of many runs in a random order, some of them again, and holds what is
// remembered to a list of all: of the runs that were used last, the last messages that fit.
func TestHistoriesAreOfTheLastMessages(t *testing.T) {
	type said struct {
		id   msg.ID
		text string
	}
	x := exporter(t, &receiver{}, ProtocolHTTP, withContent)
	r := rand.New(rand.NewPCG(1, 512))
	all := make(map[string][]said)
	var used []string   // the last one last
	bounded := func() { // as before each batch
		for len(used) > maxHistories {
			delete(all, used[0])
			used = used[1:]
		}
		for run, list := range all {
			size := 0
			for _, s := range list {
				size += len(s.text)
			}
			for size > maxContent {
				size -= len(list[0].text)
				list = list[1:]
			}
			all[run] = list
		}
	}
	for batch := range 60 {
		bounded()
		b := &export.Batch{ID: fmt.Sprint(batch)}
		for n := range 30 {
			run := fmt.Sprint(r.IntN(800))
			if n%10 == 0 {
				run = "long"
			}
			s := said{msg.ID{byte(batch), byte(n), 1}, strings.Repeat("x", r.IntN(16))}
			at := -1
			if known := all[run]; n%10 == 0 {
				s.text = strings.Repeat("y", maxContent/4)
			} else if len(known) > 0 && r.IntN(3) == 0 { // a later version
				at = r.IntN(len(known))
				s.id = known[at].id
			}
			if at < 0 {
				all[run] = append(all[run], s)
			} else {
				all[run][at] = s
			}
			used = append(slices.DeleteFunc(used, func(other string) bool { return other == run }), run)
			b.Messages = append(b.Messages, &msg.Message{Session: "s", Run: run, Kind: msg.User, Content: msg.Plain(s.text), Host: msg.Host{ID: s.id}})
		}
		for range 2 { // a batch that is offered again
			if err := x.Export(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		if len(x.cache.order) != len(used) || len(x.cache.byRun) != len(used) {
			t.Fatalf("batch %d: %d runs in order, %d are remembered, want %d", batch, len(x.cache.order), len(x.cache.byRun), len(used))
		}
		for i, run := range used {
			h := x.cache.byRun[x.cache.order[i]]
			if x.cache.order[i].run != run || h == nil {
				t.Fatalf("batch %d: run %d is %s, want %s", batch, i, x.cache.order[i].run, run)
			}
			var got []said
			size := 0
			for _, e := range h.entries {
				got = append(got, said{e.id, *e.part.Content})
				size += len(*e.part.Content)
			}
			if !slices.Equal(got, all[run]) || size != h.bytes {
				t.Fatalf("batch %d: run %s has %d messages of %d bytes (%d by its count), want %d", batch, run, len(got), size, h.bytes, len(all[run]))
			}
		}
	}
	if h := x.cache.history(&msg.Span{Session: "s", Run: "long"}); h == nil || h.dropped+len(h.entries) != 180 {
		t.Errorf("the long run: %+v", h)
	}
}

// TestTextsOfARun: what is on no span of a response is on the run's, and nothing else: a prompt without an answer, an answer of no response, a result whose
// call was not read. A response without output has the messages up to its request, that of the same moment too.
func TestTextsOfARun(t *testing.T) {
	run, chat := msg.SpanID{1}, msg.SpanID{2}
	say := func(n byte, kind msg.Kind, text string, chat, span msg.SpanID) msg.Message {
		return msg.Message{Session: "s", Run: "r", Kind: kind, Time: int64(n), Content: msg.Plain(text), Host: msg.Host{ID: msg.ID{n}, Chat: chat, SpanID: span}}
	}
	var none msg.SpanID
	result := say(5, msg.ToolResult, "of no call", none, msg.SpanID{9})
	result.Tool.CallID = "c"
	for name, c := range map[string]struct {
		messages []msg.Message
		in, out  []string
	}{
		"an answered prompt":            {[]msg.Message{say(1, msg.User, "how deep?", none, run), say(2, msg.Assistant, "4 m", chat, chat)}, nil, nil},
		"a prompt without an answer":    {[]msg.Message{say(1, msg.User, "how deep?", none, run)}, []string{"how deep?"}, nil},
		"an answer of no response":      {[]msg.Message{say(1, msg.User, "how deep?", none, run), say(2, msg.Assistant, "4 m", none, run)}, []string{"how deep?"}, []string{"4 m"}},
		"one prompt after the answer":   {[]msg.Message{say(1, msg.User, "how deep?", none, run), say(2, msg.Assistant, "4 m", chat, chat), say(3, msg.User, "and there?", none, run)}, []string{"and there?"}, nil},
		"a result of an unread call":    {[]msg.Message{say(1, msg.User, "how deep?", none, run), say(2, msg.Assistant, "4 m", chat, chat), result}, []string{"of no call"}, nil},
		"beside a call that was read":   {[]msg.Message{say(1, msg.ToolCall, "", chat, msg.SpanID{8}), result}, []string{"of no call"}, nil},
		"a result of a call":            {[]msg.Message{say(1, msg.ToolCall, "", chat, msg.SpanID{9}), result}, nil, nil},
		"a call of no response":         {[]msg.Message{say(1, msg.ToolCall, "", none, msg.SpanID{9}), result}, nil, nil},
		"a result on the run":           {[]msg.Message{say(1, msg.ToolCall, "", chat, run), say(2, msg.ToolResult, "4 m", none, run)}, []string{"4 m"}, nil},
		"a text beside its span":        {[]msg.Message{say(1, msg.Assistant, "4 m", none, msg.SpanID{9}), result}, []string{"of no call"}, []string{"4 m"}},
		"a prompt between two parts":    {[]msg.Message{say(1, msg.User, "how deep?", none, run), say(2, msg.Assistant, "4 m", chat, chat), say(3, msg.User, "and?", none, run), say(4, msg.Assistant, "5 m", chat, chat)}, []string{"and?"}, nil},
		"an answer before every prompt": {[]msg.Message{say(1, msg.Assistant, "4 m", chat, chat), say(2, msg.User, "how deep?", none, run)}, []string{"how deep?"}, nil},
	} {
		x := exporter(t, &receiver{}, ProtocolHTTP, withContent)
		x.cache.record(exporttest.Records(c.messages...))
		s := &msg.Span{Kind: msg.SpanRun, Session: "s", Run: "r", ID: run, FinishReasons: []string{"end_turn"}}
		for key, want := range map[string][]string{semconv.KeyInputMessages: c.in, semconv.KeyOutputMessages: c.out} {
			var got []string
			var list []message
			if text := x.attribute(s, key); text != "" {
				if err := json.Unmarshal([]byte(text), &list); err != nil {
					t.Fatal(err)
				}
			}
			for i, m := range list {
				for _, p := range m.Parts {
					got = append(got, *cmp.Or(p.Content, p.Response))
				}
				if first := key == semconv.KeyOutputMessages && i == 0; (m.FinishReason == "end_turn") != first {
					t.Errorf("%s: message %d of %s ended by %q", name, i, key, m.FinishReason)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %s are %q, want %q", name, key, got, want)
			}
		}
	}
	five, seven := "12345", "1234567"
	if n := (&part{Arguments: []byte("123"), Name: "1234", URI: "12345678901", Content: &five, Response: &seven}).size(); n != 30 {
		t.Errorf("a part of 30 bytes has %d by its count", n)
	}
	for name, c := range map[string]struct {
		sizes       []int // of prompts, in KiB
		in, dropped int
	}{
		"as much as fits": {[]int{32, 32}, 2, 0}, "more": {[]int{20, 20, 20, 10}, 3, 1}, "each is too long": {[]int{99, 99}, 1, 1}, "one is too long": {[]int{99}, 1, 0}, "none": {nil, 0, 0},
	} {
		h := new(history)
		for i, kib := range c.sizes {
			m := say(byte(i), msg.User, strings.Repeat("x", kib<<10), none, run)
			e, _ := entryOf(&m)
			h.add(e)
		}
		h.trim()
		m := say(99, msg.Assistant, "4 m", chat, chat)
		e, _ := entryOf(&m)
		h.add(e)
		if in, out, dropped := h.chat(chat, 0); len(in) != c.in || len(out) != 1 || dropped != c.dropped {
			t.Errorf("%s: %d messages in, want %d; %d out, %d dropped, want %d", name, len(in), c.in, len(out), dropped, c.dropped)
		}
	}
	h := new(history)
	for _, m := range []msg.Message{say(1, msg.Assistant, "4 m", chat, chat), say(2, msg.User, "and there?", none, run), say(3, msg.Assistant, "5 m", chat, chat)} {
		e, _ := entryOf(&m)
		h.add(e)
	}
	if in, out, _ := h.chat(chat, 9); len(in) != 0 || len(out) != 1 || len(out[0].Parts) != 2 {
		t.Errorf("a response that is first: %d messages in, %d out", len(in), len(out))
	}
	x := exporter(t, &receiver{}, ProtocolHTTP, withContent)
	x.cache.record(exporttest.Records(say(1, msg.User, "one", none, run), say(2, msg.User, "two", none, run), say(3, msg.User, "three", none, run)))
	for asked, want := range map[int64]int{0: 0, 1: 1, 2: 2, 9: 3} {
		in, out, dropped := x.cache.history(&msg.Span{Session: "s", Run: "r"}).chat(chat, asked)
		if len(in) != want || len(out) != 0 || dropped != 0 {
			t.Errorf("asked at %d: %d messages in, %d out, %d dropped", asked, len(in), len(out), dropped)
		}
	}
}

// TestHistoriesOutliveTheirBatch: the texts of a batch lie in memory that has others once it is exported.
func TestHistoriesOutliveTheirBatch(t *testing.T) {
	x := exporter(t, &receiver{}, ProtocolHTTP, withContent)
	for n := range byte(3) {
		lent := []byte("default legion s1 r1 c1 tides how deep?")
		of := func(s string) string {
			at := bytes.Index(lent, []byte(s))
			return unsafe.String(&lent[at], len(s))
		}
		m := msg.Message{Session: of("s1"), Run: of("r1"), Kind: msg.User, Content: msg.Raw(lent[len(lent)-9:]), Host: msg.Host{Tenant: of("default"), Format: of("legion"), ID: msg.ID{n, 1}}}
		call, other := m, m
		call.Kind, call.Host.ID, call.Tool = msg.ToolCall, msg.ID{n, 2}, msg.Tool{CallID: of("c1"), Name: of("tides"), Arguments: msg.Raw(lent[len(lent)-9:])}
		other.Run = of("legion")
		list := []msg.Message{m, call}
		if n == 1 {
			list = []msg.Message{other, m, call}
		}
		if err := x.Export(t.Context(), &export.Batch{ID: string(rune('a' + n)), Messages: exporttest.Records(list...)}); err != nil {
			t.Fatal(err)
		}
		for i := range lent {
			lent[i] = '!'
		}
	}
	x.cache.evict()
	got, err := json.Marshal(x.cache.history(&msg.Span{Tenant: "default", Format: "legion", Session: "s1", Run: "r1"}).entries[5].part)
	if err != nil || string(got) != `{"type":"tool_call","id":"c1","name":"tides","arguments":"how deep?"}` {
		t.Errorf("%s, %v", got, err)
	}
	if len(x.cache.order) != 2 || x.cache.order[1].run != "r1" {
		t.Errorf("the runs are %v", x.cache.order)
	}
}

// TestWhatIsRemembered: of messages that are there, and are of a run, the texts, the instructions and the tools.
func TestWhatIsRemembered(t *testing.T) {
	x := exporter(t, &receiver{}, ProtocolHTTP, withContent)
	add := func(kind msg.Kind, content string, change func(*msg.Message)) {
		m := msg.Message{Session: "s", Run: "r", Kind: kind, Content: msg.Plain(content)}
		change(&m)
		x.cache.record(exporttest.Records(m))
	}
	add(msg.User, "taken back", func(m *msg.Message) { m.Host.Tombstone = true })
	add(msg.User, "of no run", func(m *msg.Message) { m.Run = "" })
	if len(x.cache.byRun) != 0 || len(x.cache.order) != 0 {
		t.Errorf("%d runs are remembered", len(x.cache.byRun))
	}
	const tools = `[{"name":"tides"}]`
	add(msg.System, "You keep the harbour.", func(m *msg.Message) { m.Role = msg.RoleSystem })
	add(msg.Status, tools, func(m *msg.Message) { m.SetAttr("type", msg.TypeTools) })
	add(msg.System, "", func(m *msg.Message) { m.Role = msg.RoleSystem })
	add(msg.System, "a notice", func(*msg.Message) {})
	add(msg.Error, "an error", func(m *msg.Message) { m.Role = msg.RoleSystem })
	add(msg.Status, "[]", func(*msg.Message) {})
	add(msg.File, "[]", func(m *msg.Message) { m.SetAttr("type", msg.TypeTools) })
	h := x.cache.history(&msg.Span{Session: "s", Run: "r"})
	if string(h.system) != `[{"type":"text","content":"You keep the harbour."}]` || string(h.tools) != tools || len(h.entries) != 0 {
		t.Errorf("%s, %s, %d entries", h.system, h.tools, len(h.entries))
	}
}
