package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// Measured costs; docs/scaling.md shows where each is from.
const (
	planBytesRead     = 1400.0  // of Legion traffic, a message
	planBytesStored   = 290.0   // on the disk, a message with its spans and calls
	planRowsPerCore   = 67_000  // messages that a core of the store takes in a second, merges included
	planFlushCost     = 0.036   // core-seconds of a flush of live traffic, all tables
	planSidecarPerMB  = 0.0115  // core-seconds of a sidecar and its decoder, a megabyte read
	planHeadroom      = 2.0     // cores for peaks and queries, over those for inserts
	planCoresPerShard = 16      // of a server
	planDiskPerShard  = 4e12    // of a server, bytes
	planInserts       = 10.0    // inserts into one table that a server takes in a second
	planMinFlush      = 1.0     // seconds, the default of delivery.flush_interval
	day               = 86400.0 // seconds
)

// clusterPlan are the needs of a rate of messages.
type clusterPlan struct {
	Messages   float64 `json:"messages_per_second"`
	Retention  float64 `json:"retention_days"`
	Replicas   int     `json:"replicas"`
	Sidecars   int     `json:"sidecars"`
	Traffic    float64 `json:"traffic_bytes_per_second"`
	SidecarCPU float64 `json:"sidecar_cores"`  // of all together
	InsertCPU  float64 `json:"insert_cores"`   // of all replicas
	StoreCPU   float64 `json:"store_cores"`    // with headroom
	DiskPerDay float64 `json:"disk_per_day"`   // bytes, one replica
	Disk       float64 `json:"disk"`           // bytes, all replicas
	Flush      float64 `json:"flush_interval"` // seconds
	Shards     int     `json:"shards"`
	Servers    int     `json:"servers"`
}

func planCluster(messages, retentionDays float64, replicas, sidecars int) clusterPlan {
	p := clusterPlan{Messages: messages, Retention: retentionDays, Replicas: replicas, Sidecars: sidecars}
	p.Traffic = messages * planBytesRead
	p.SidecarCPU = p.Traffic / 1e6 * planSidecarPerMB
	p.DiskPerDay = messages * planBytesStored * day
	p.Disk = p.DiskPerDay * retentionDays * float64(replicas)
	rows := messages / planRowsPerCore
	byRows := rows * planHeadroom / planCoresPerShard
	byDisk := p.DiskPerDay * retentionDays / planDiskPerShard
	p.Shards = max(1, int(math.Ceil(max(byRows, byDisk))))
	p.Flush = max(planMinFlush, math.Ceil(float64(sidecars)/(planInserts*float64(p.Shards))))
	p.InsertCPU = (rows + float64(sidecars)*planFlushCost/p.Flush) * float64(replicas)
	p.StoreCPU = p.InsertCPU * planHeadroom
	p.Servers = p.Shards * replicas
	return p
}

func newPlan() *cobra.Command {
	var messages float64
	var retention, output string
	var replicas, sidecars int
	c := &cobra.Command{
		Use:   "plan",
		Short: "Compute which ClickHouse a rate of messages needs",
		Long: `Compute the cores, the disk and the servers that a rate of messages needs, from costs
that were measured on one server (docs/scaling.md). A shard has 16 cores and 4 TB of disk.
Half of the cores are for peaks and queries.`,
		Example: "  earshot plan --messages-per-second 10000 --retention 90d",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			days, err := parseDays(retention)
			if err != nil {
				return usageError{err}
			}
			if !(messages > 0) || math.IsInf(messages, 0) || replicas < 1 || sidecars < 1 {
				return usageError{fmt.Errorf("--messages-per-second, --replicas and --sidecars must be more than 0")}
			}
			p := planCluster(messages, days, replicas, sidecars)
			if output == "json" {
				return writeJSON(c.OutOrStdout(), p)
			}
			return writeTable(c.OutOrStdout(), []string{"what", "needed", "how"}, p.rows())
		},
	}
	c.Flags().Float64Var(&messages, "messages-per-second", 1000, "messages of all agents together")
	c.Flags().StringVar(&retention, "retention", "90d", "how long rows are kept")
	c.Flags().IntVar(&replicas, "replicas", 1, "copies of each row")
	c.Flags().IntVar(&sidecars, "sidecars", 1, "sidecars that send live traffic")
	outputFlag(c, &output)
	return c
}

func (p *clusterPlan) rows() [][]string {
	replicas := count(p.Replicas, "replica")
	return [][]string{
		{"traffic", planBytes(p.Traffic) + "/s", fmt.Sprintf("%.0f messages x %.0f B", p.Messages, planBytesRead)},
		{"sidecars", fmt.Sprintf("%.2g cores", p.SidecarCPU), fmt.Sprintf("%g core-s a MB, of %s together", planSidecarPerMB, count(p.Sidecars, "sidecar"))},
		{"disk a day", planBytes(p.DiskPerDay), fmt.Sprintf("%.0f B a message with its spans and calls", planBytesStored)},
		{"disk", planBytes(p.Disk), fmt.Sprintf("%g days x %s", p.Retention, replicas)},
		{"inserts", fmt.Sprintf("%.2g cores", p.InsertCPU), fmt.Sprintf("%d messages a core and second, %g core-s a flush of a sidecar, x %s", planRowsPerCore, planFlushCost, replicas)},
		{"store", fmt.Sprintf("%.2g cores", p.StoreCPU), fmt.Sprintf("x %g for peaks and queries", planHeadroom)},
		{"flush_interval", fmt.Sprintf("%gs", p.Flush), fmt.Sprintf("%g inserts into a table a second and server at most", planInserts)},
		{"shards", strconv.Itoa(p.Shards), fmt.Sprintf("%d cores or %s of disk each", planCoresPerShard, planBytes(planDiskPerShard))},
		{"servers", strconv.Itoa(p.Servers), "shards x replicas"},
	}
}

// parseDays parses a duration, of which a day is a unit too.
func parseDays(s string) (float64, error) {
	if number, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseFloat(number, 64)
		if err != nil || !(n > 0) || math.IsInf(n, 0) {
			return 0, fmt.Errorf("--retention %q: expected a duration like 90d", s)
		}
		return n, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("--retention %q: expected a duration like 90d", s)
	}
	return d.Hours() / 24, nil
}

// planBytes prints a number of bytes in the unit that it is planned in.
func planBytes(n float64) string {
	for _, u := range []struct {
		name string
		size float64
	}{{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}} {
		if n >= u.size {
			return fmt.Sprintf("%.3g %s", n/u.size, u.name)
		}
	}
	return fmt.Sprintf("%.3g kB", n/1e3)
}
