package clickhouse

import (
	"fmt"
	"slices"
	"time"
)

// maxPartitions is how many partitions one insert may touch; the server's own
// limit (max_partitions_per_insert_block) is 100.
const maxPartitions = 90

// part is a run of a job's rows that goes in one insert.
type part struct{ from, to int }

// token identifies the rows of a part, so that a server that has them already
// drops them. It names the run and not only the batch: with another limit a part
// of the same number would hold other rows, and they would be dropped too.
func (p part) token(batch, table string) string {
	return fmt.Sprintf("%s-%s-%d-%d", batch, table, p.from, p.to)
}

// split cuts the job's rows into parts of at most limit bytes, about, and
// maxPartitions partitions. Rows of more partitions are put in order of
// partition first, so that each is written to once.
func (j *job) split(limit int) []part {
	seen := make(map[int32]struct{})
	if j.period != nil {
		for _, i := range j.rows {
			seen[j.period(i)] = struct{}{}
		}
		if len(seen) > maxPartitions {
			slices.SortStableFunc(j.rows, func(a, b int32) int { return int(j.period(a)) - int(j.period(b)) })
		}
		clear(seen)
	}
	var out []part
	from, size := 0, 0
	for n, i := range j.rows {
		var period int32
		if j.period != nil {
			period = j.period(i)
		}
		_, known := seen[period]
		row := j.size(i)
		if n > from && (size+row > limit || !known && len(seen) == maxPartitions) {
			out = append(out, part{from, n})
			from, size = n, 0
			clear(seen)
		}
		seen[period] = struct{}{}
		size += row
	}
	if from < len(j.rows) {
		out = append(out, part{from, len(j.rows)})
	}
	return out
}

// month and day number the partitions of tables by time.
func month(ns int64) int32 {
	y, m, _ := time.Unix(0, ns).UTC().Date()
	return int32(y)*12 + int32(m)
}

func day(ns int64) int32 { return int32(ns / int64(24*time.Hour)) }
