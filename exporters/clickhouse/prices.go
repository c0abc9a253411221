package clickhouse

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/price"
)

// ofProgram is the version of rows of model_prices that a program wrote. Rows that people
// insert have the time as their version, and precedence.
const ofProgram = 1

type priceKey struct {
	model string
	from  int64 // Unix seconds
}

// writePrices sets model_prices to the prices of the settings, which the commands compute
// with. Rows that people have inserted stay, and have precedence over those of the same
// model and day.
func (x *Exporter) writePrices(ctx context.Context) error {
	want := make(map[priceKey]price.Price)
	var values []string
	for _, r := range x.settings.Prices.Rows() {
		k := priceKey{r.Model, max(r.From.Unix(), 0)}
		want[k] = r.Price
		number := func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
		var tiers []string
		for _, name := range slices.Sorted(maps.Keys(r.Tiers)) {
			tiers = append(tiers, quoteText(name)+", "+number(r.Tiers[name]))
		}
		values = append(values, fmt.Sprintf("(%s, %d, %s, %s, %s, %s, %s, map(%s), %d, %s, %s, 'earshot', %d)", quoteText(k.model), k.from,
			number(r.Input), number(r.Output), number(r.CacheRead), number(r.CacheWrite), number(r.CacheWrite1h), strings.Join(tiers, ", "),
			r.Long.Over, number(r.Long.Input), number(r.Long.Output), ofProgram))
	}
	same, written, err := x.hasPrices(ctx, want)
	if err != nil || same {
		return err
	}
	table := x.schema.name("model_prices")
	if written { // a new database is spared the mutation
		if err := x.conn.db.Exec(ctx, fmt.Sprintf("ALTER TABLE %s DELETE WHERE ver <= %d SETTINGS mutations_sync = 2", table, ofProgram)); err != nil {
			return err
		}
	}
	if len(values) == 0 {
		return nil
	}
	return x.conn.db.Exec(ctx, fmt.Sprintf("INSERT INTO %s (model, valid_from, input_usd_per_m, output_usd_per_m, cache_read_usd_per_m, cache_write_usd_per_m, cache_write_1h_usd_per_m, tiers, long_over, long_input, long_output, origin, ver) VALUES %s",
		table, strings.Join(values, ", ")))
}

// hasPrices reports whether the table has the wanted prices and no other ones that a program
// wrote, and whether it has any that a program wrote.
func (x *Exporter) hasPrices(ctx context.Context, want map[priceKey]price.Price) (same, written bool, err error) {
	rows, err := x.conn.db.Query(ctx, "SELECT model, valid_from, input_usd_per_m, output_usd_per_m, cache_read_usd_per_m, cache_write_usd_per_m, cache_write_1h_usd_per_m, tiers, long_over, long_input, long_output, ver FROM "+x.schema.name("model_prices")+" FINAL")
	if err != nil {
		return false, false, err
	}
	defer rows.Close()
	found, stale := 0, false
	for rows.Next() {
		var k priceKey
		var from time.Time
		var p price.Price
		var ver uint64
		if err := rows.Scan(&k.model, &from, &p.Input, &p.Output, &p.CacheRead, &p.CacheWrite, &p.CacheWrite1h, &p.Tiers, &p.Long.Over, &p.Long.Input, &p.Long.Output, &ver); err != nil {
			return false, false, err
		}
		k.from = from.Unix()
		wanted, ok := want[k]
		written = written || ver <= ofProgram
		stale = stale || ver < ofProgram || ver == ofProgram && (!ok || !wanted.Equal(p))
		if ok {
			found++
		}
	}
	return found == len(want) && !stale, written, rows.Err()
}
