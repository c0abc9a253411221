package clickhouse

import (
	"encoding/binary"
	"runtime"
	"strconv"
	"testing"
	"time"

	chgo "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/earshot-dev/earshot/bench/proc"
	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/export/exporttest"
	"github.com/earshot-dev/earshot/core/msg"
)

// TestInsertCostsLessThanTheDriver stores 10,000 messages through the exporter
// and through the driver's row appends, in the same run, and prints the ratios.
// Wall time has the server in it; the processor time of this process does not. The exporter takes a sixth of the driver's, of ten times as
// many messages a seventh.
func TestInsertCostsLessThanTheDriver(t *testing.T) {
	const total, batch = 10_000, 2000
	messages := sampleMessages(total)
	x, c := exporter(t, nil)
	ours := measure(func() {
		for at := 0; at < total; at += batch {
			export1(t, x, &export.Batch{ID: msg.HashKey(time.Unix(0, int64(at)).String()), Messages: exporttest.Records(messages[at : at+batch]...)})
		}
	})
	stored := "SELECT count(), uniqExact(message_id), sum(length(content)) FROM messages"
	want := count(t, c, stored)
	if err := c.Exec(t.Context(), "TRUNCATE TABLE messages"); err != nil {
		t.Fatal(err)
	}
	var columns []chgo.ColumnNameAndType
	for _, col := range x.writers.messages.block.Columns {
		columns = append(columns, chgo.ColumnNameAndType{Name: col.Name, Type: col.Type().String()})
	}
	ctx := chgo.Context(t.Context(), chgo.WithSettings(chgo.Settings{"async_insert": 0}), chgo.WithColumnNamesAndTypes(columns))
	theirs := measure(func() {
		for at := 0; at < total; at += batch {
			b, err := c.db.PrepareBatch(ctx, x.writers.messages.insert)
			if err != nil {
				t.Fatal(err)
			}
			for i := range messages[at : at+batch] {
				if err := b.Append(driverRow(x.writers.messages, &messages[at+i])...); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.Send(); err != nil {
				t.Fatal(err)
			}
		}
	})
	if got := count(t, c, stored); got != want {
		t.Errorf("the driver stored %s, the exporter %s", got, want)
	}
	t.Logf("exporter %s, driver %s: %.2f of the time, %.2f of the processor, %.2f of the allocations", ours, theirs,
		ours.wall.Seconds()/theirs.wall.Seconds(), ours.cpu.Seconds()/theirs.cpu.Seconds(), float64(ours.allocated)/float64(theirs.allocated))
	if ours.cpu >= theirs.cpu || ours.allocated >= theirs.allocated {
		t.Error("the exporter costs more than the driver's row appends")
	}
}

// BenchmarkInsert stores batches of messages in the engine through the exporter: their
// rows, and those of every table that follows from them, are there when Export returns.
// Allocations and processor time are this process's, the engine's are its own.
func BenchmarkInsert(b *testing.B) {
	const rows = 10_000
	messages := exporttest.Records(sampleMessages(rows)...)
	size := 0
	for i := range messages {
		size += messages[i].Content.Len()
	}
	x, _ := exporter(b, nil)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	cpu, n := proc.Own(), 0
	for b.Loop() {
		n++
		for i := range messages { // other rows than those before
			messages[i].Host.Seq += rows
			binary.LittleEndian.PutUint64(messages[i].Host.ID[:], messages[i].Host.Seq)
		}
		export1(b, x, &export.Batch{ID: msg.HashKey(strconv.Itoa(n)), Messages: messages})
	}
	b.ReportMetric(float64(proc.Own()-cpu)/float64(b.N)/rows, "cpu-ns/row")
	b.ReportMetric(rows, "records/op")
}

type cost struct {
	wall, cpu time.Duration
	allocated uint64
}

func (c cost) String() string {
	return c.wall.Round(time.Millisecond).String() + " (cpu " + c.cpu.Round(time.Millisecond).String() + ")"
}

func measure(f func()) cost {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start, cpu := time.Now(), proc.Own()
	f()
	c := cost{wall: time.Since(start), cpu: proc.Own() - cpu}
	runtime.ReadMemStats(&after)
	c.allocated = after.TotalAlloc - before.TotalAlloc
	return c
}
