package clickhouse

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/bench/proc"
	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/msg"
)

// liveRows makes the rows of a second of many live streams: answers that end, of conversations of
// one prompt each.
type liveRows struct {
	n     uint64
	batch int
}

func (l *liveRows) flush(rows int) *export.Batch {
	l.batch++
	b := &export.Batch{ID: msg.HashKey(fmt.Sprint("live", l.batch))}
	now := time.Now().UnixNano()
	for i := range rows {
		l.n++
		session := fmt.Sprintf("session-%06d", l.n/2)
		m := sampleMessages(2)[l.n%2]
		m.Session, m.Run, m.Time, m.Attrs = session, session+"/run", now+int64(i)*1e6, nil
		m.Content = msg.Plain(fmt.Sprintf("%d and word %d of it", l.n, i))
		m.Host.Seq, m.Host.Source, m.Host.Format = l.n, "provider", "anthropic-sse"
		binary.LittleEndian.PutUint64(m.Host.ID[:], l.n)
		b.Messages = append(b.Messages, new(m))
		s := sampleSpan()
		s.Kind, s.Events, s.Links, s.Start, s.End, s.Session, s.Run, s.Tool = msg.SpanChat, nil, nil, now+int64(i)*1e6, now+1e9, session, session+"/run", msg.Tool{}
		s.Delegate = msg.Delegate{}
		if l.n%2 == 0 {
			s.Kind, s.Parent = msg.SpanRun, msg.SpanID{}
		}
		binary.LittleEndian.PutUint64(s.ID[:], l.n)
		binary.LittleEndian.PutUint64(s.TraceID[:], l.n/2)
		b.Spans = append(b.Spans, new(s))
		if l.n%2 == 0 {
			b.Streams = append(b.Streams, msg.Stream{
				Tenant: "default", Source: "provider", Format: "anthropic-sse", Stream: session, Origin: "http://h/v1/messages", Method: "POST", Status: 200,
				Session: session, Run: session + "/run", Pace: msg.Pace{Start: now, Total: 1e9, Events: 50}, Ver: l.n,
			})
			b.Ledger = append(b.Ledger, msg.Ledger{
				Tenant: "default", Source: "provider", Format: "anthropic-sse", Stream: session, Origin: "http://h/v1/messages",
				Read: 5000, Decoded: 5000, Frames: 50, Messages: 2, Seen: now, Since: now, Ver: l.n,
			})
		}
	}
	return b
}

// BenchmarkLiveFlush is the engine's processor time of each part of a flush of live traffic, its merges
// included: inserts of 160 rows, and what is derived of conversations every fifth time. The cases are run in turn.
func BenchmarkLiveFlush(b *testing.B) {
	const rounds, times = 6, 20
	x, c := exporter(b, func(s *Settings) { s.ConversationsEvery = time.Hour })
	x.keeper.stop()
	if storeProcess == 0 {
		b.Skip("measures the embedded store's process")
	}
	var live liveRows
	cases := []struct {
		name  string
		batch func(*export.Batch) *export.Batch
	}{
		{"messages", func(b *export.Batch) *export.Batch { return &export.Batch{ID: b.ID, Messages: b.Messages} }},
		{"spans", func(b *export.Batch) *export.Batch { return &export.Batch{ID: b.ID, Spans: b.Spans} }},
		{"streams", func(b *export.Batch) *export.Batch { return &export.Batch{ID: b.ID, Streams: b.Streams} }},
		{"ledger", func(b *export.Batch) *export.Batch { return &export.Batch{ID: b.ID, Ledger: b.Ledger} }},
	}
	cpu := make([][]time.Duration, len(cases))
	for range rounds {
		for i, k := range cases {
			began, _ := proc.Of(storeProcess)
			for n := range times {
				export1(b, x, k.batch(live.flush(160)))
				if k.name == "messages" && n%5 == 4 {
					derive(b, x)
				}
			}
			for count(b, c, "SELECT count() FROM system.merges") != "0" {
				time.Sleep(20 * time.Millisecond)
			}
			ended, _ := proc.Of(storeProcess)
			cpu[i] = append(cpu[i], (ended-began)/times)
		}
	}
	for i, k := range cases {
		slices.Sort(cpu[i])
		b.ReportMetric(float64(cpu[i][rounds/2].Microseconds())/1000, k.name+"-ms")
		b.Logf("%-40s %v", k.name, cpu[i])
	}
}

// derive brings the tables of conversations up to date.
func derive(b *testing.B, x *Exporter) {
	b.Helper()
	if err := x.underived.derive(b.Context(), x); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkLivePass is the engine's processor time of a pass of the attribution over ten minutes of live traffic, as
// the first pass after a start is, and over its last seconds, as the others are. The cases are run in turn.
func BenchmarkLivePass(b *testing.B) {
	const flushes, rounds = 30, 5
	x, c := exporter(b, nil)
	x.keeper.stop()
	if storeProcess == 0 {
		b.Skip("measures the embedded store's process")
	}
	p := attributorOf(x)
	if _, err := p.write(b.Context(), nil); err != nil {
		b.Fatal(err)
	}
	pass := func(begin time.Time) time.Duration {
		began, _ := proc.Of(storeProcess)
		if _, err := p.pass(b.Context(), begin); err != nil {
			b.Fatal(err)
		}
		ended, _ := proc.Of(storeProcess)
		return ended - began
	}
	pass(time.Time{}) // notes the time
	var live liveRows
	for range flushes {
		export1(b, x, live.flush(2000))
	}
	time.Sleep(clockSlack)
	var all, last []time.Duration
	for range rounds {
		begin := time.Now()
		export1(b, x, live.flush(500))
		last = append(last, pass(begin))
		all = append(all, pass(time.Time{}))
	}
	slices.Sort(all)
	slices.Sort(last)
	b.Logf("conversations %s: all %v, the last %v", count(b, c, "SELECT count() FROM turn_facts FINAL"), all, last)
	b.ReportMetric(float64(all[rounds/2].Milliseconds()), "all-ms")
	b.ReportMetric(float64(last[rounds/2].Milliseconds()), "last-ms")
}
