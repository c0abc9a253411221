package otel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/msg"
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
			b.Messages = append(b.Messages, msg.Message{Session: "s", Run: run, Kind: msg.User, Content: msg.Plain(s.text), Host: msg.Host{ID: s.id}})
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
