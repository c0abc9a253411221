package boards

import "github.com/earshot-dev/earshot/dashboards/internal/grafana"

// listening is since when the sidecars listen, by source.
const listening = `WITH (
    SELECT mapFromArrays(groupArray(source), groupArray(at))
    FROM (SELECT toString(source) AS source, max(since) AS at FROM source_ledger FINAL GROUP BY source)) AS since
`

const (
	// live is the condition for messages with a time of their own that is not
	// long before they were stored: a backfill is no lag.
	live = `NOT inferred AND ts > ingest_ts - INTERVAL 1 HOUR`
	// sinceStart is the same for messages written since the present sidecar started.
	sinceStart = `ts >= since[source]`
)

func self() *grafana.Dashboard {
	d := grafana.New("earshot-self", "Earshot / Earshot itself", "Whether the tables are complete: lag, the ledger of every byte, dead letters, unknown records.")
	d.Templating.List = choices("format")
	chosen := where("format")
	const healthy = "Nothing was set aside in this range"

	d.Row(4,
		grafana.Stat("Bytes unaccounted for", "Read, and neither decoded nor quarantined nor dropped for a reason. Anything but 0 is a bug in Earshot.", "bytes", sql(`
SELECT sum(unaccounted_bytes) AS unaccounted
FROM v_sources
WHERE 1`+picked("format"))).Warn(1, 1).Empty("0"),
		grafana.Stat("Bytes dropped", "Dropped for a stated reason, ever.", "bytes", sql(`
SELECT sum(dropped_bytes) AS dropped
FROM v_sources
WHERE 1`+picked("format"))).Warn(1, 1e6).Empty("0"),
		grafana.Stat("Dead letters", "Set aside in this range.", "short", sql(`
SELECT count() AS letters
FROM v_dead_letters
`+chosen)).Warn(1, 100).Compared(grafana.Lower).Empty("0"),
		grafana.Stat("Unknown", "Messages in this range of types that their decoder does not know. They are kept raw.", "short", sql(`
SELECT sumIf(messages, kind = 'unknown') AS unknown
FROM `+countedMessages.in(false, "format", "kind", "messages")+`
WHERE 1`+picked("format"))).Warn(1, 1000).Compared(grafana.Lower).Empty("0"),
		grafana.Stat("Lag, p95", "From when a message was written to when it could be queried, for those stored in this range that were written while the sidecar ran: older content is no lag. Rows of the embedded store wait up to a minute for a reader.", "ms", sql(listening+`
SELECT quantileExactOrNull(0.95)(dateDiff('millisecond', ts, ingest_ts)) AS lag
FROM messages FINAL
WHERE $__timeFilter_ms(ingest_ts) AND `+live+` AND (`+sinceStart+` OR ingest_ts < since[source])`+picked("format"))).Warn(75000, 150000).Compared(grafana.Lower).Empty("nothing new"),
		grafana.Stat("Latest message", "How long ago anything was stored.", "s", sql(`
SELECT dateDiff('second', max(seen), now()) AS ago
FROM sessions
WHERE $__conditionalAll(hasAny(formats, `+items("format")+`), $format)
HAVING count() > 0`)).Empty("never"),
	)
	d.Row(8, grafana.Table("Account of the sources", "Read = decoded + quarantined + dropped, for every source since it is known.", sql(`
SELECT source AS Source, format AS Format, streams AS Streams, read_bytes AS Read, decoded_bytes AS Decoded, quarantined_bytes AS Quarantined,
  dropped_bytes AS Dropped, unaccounted_bytes AS Unaccounted, frames AS Frames, messages AS Messages, unknown AS Unknown, problems AS Problems, last_seen AS "Last seen"
FROM v_sources
WHERE 1`+picked("format")+`
ORDER BY Source`)).Field("Read", grafana.Unit("bytes")).Field("Decoded", grafana.Unit("bytes")).Field("Quarantined", grafana.Unit("bytes")).
		Field("Dropped", grafana.Unit("bytes")).Field("Unaccounted", grafana.Unit("bytes")).Empty("No source has read anything yet"))
	// Rows are grouped by one number: by a time and a name it took twice as long.
	d.Row(8,
		grafana.Bars("Stored", "Messages by when they were stored.", "short", sql(`
SELECT any(at) AS time, any(m.source) AS source, count() AS messages
FROM (
  SELECT $__timeInterval(ingest_ts) AS at, source
  FROM messages FINAL
  WHERE $__timeFilter_ms(ingest_ts)`+picked("format")+`) AS m
GROUP BY cityHash64(m.source) + toUnixTimestamp(at)
ORDER BY time, source`)).Every("1m").Empty("Nothing was stored in this range"),
		grafana.Series("Lag", "From when a message was written to when it could be queried, if that was while Earshot listened; backfills left out.", "ms", sql(listening+`
SELECT $__timeInterval(ingest_ts) AS time, source, quantileExact(0.95)(dateDiff('millisecond', ts, ingest_ts)) AS p95
FROM messages FINAL
WHERE $__timeFilter_ms(ingest_ts) AND `+live+` AND (`+sinceStart+` OR ingest_ts < since[source])`+picked("format")+`
GROUP BY time, source
ORDER BY time, source`)).Every("1m").Empty("Nothing new was stored in this range"),
	)
	d.Row(8,
		grafana.Bars("Dead letters", "By when they were set aside, and why.", "short", sql(`
SELECT $__timeInterval(ts) AS time, concat(stage, ' ', reason) AS why, count() AS letters
FROM v_dead_letters
`+chosen+`
GROUP BY time, why
ORDER BY time, why`)).Every("1m").Empty(healthy),
		grafana.Table("Decoders", "The outcome of each decoder's input, since its first record.", sql(`
SELECT format AS Format, sum(frames) AS Frames, sum(messages) AS Messages, sum(unknown) AS Unknown, sum(problems) AS Problems,
  sum(problems) / nullIf(sum(frames), 0) AS "Problems per frame"
FROM v_sources
WHERE 1`+picked("format")+`
GROUP BY Format
ORDER BY Problems DESC, Format`)).Field("Problems per frame", grafana.Unit("percentunit")).Width(12).Empty("No source has read anything yet"),
	)
	d.Row(9, grafana.Table("Latest dead letters", "With the beginning of their bytes.", sql(`
SELECT ts AS Time, source AS Source, stage AS Stage, reason AS Reason, error AS Error, origin AS Origin, origin_offset AS Offset, payload_bytes AS Bytes,
  toValidUTF8(substring(payload, 1, 200)) AS Payload
FROM v_dead_letters
`+chosen+`
ORDER BY Time DESC, dl_id
LIMIT 100`)).Field("Bytes", grafana.Unit("bytes")).Field("Payload", grafana.Columns(420)).Empty(healthy))
	d.Row(8,
		grafana.Table("Unknown types", "Types that decoders do not know: a newer agent, or a gap in Earshot.", sql(`
SELECT format AS Format, type AS Type, count() AS Messages, min(ts) AS First, max(ts) AS Last
FROM v_unknown
`+chosen+`
GROUP BY Format, Type
ORDER BY Messages DESC, Format, Type
LIMIT 100`)).Width(12).Empty("Every message is of a known type"),
		grafana.Table("Storage", "Of this server's tables; merges may still make them smaller.", sql(`
SELECT table AS Table, sum(rows) AS Rows, sum(bytes_on_disk) AS "On disk", sum(data_uncompressed_bytes) AS Uncompressed, count() AS Parts
FROM system.parts
WHERE active AND database = currentDatabase()
GROUP BY Table
ORDER BY "On disk" DESC, Table`)).Field("On disk", grafana.Unit("bytes")).Field("Uncompressed", grafana.Unit("bytes")).Width(12).Empty("Nothing is stored yet"),
	)
	return d
}
