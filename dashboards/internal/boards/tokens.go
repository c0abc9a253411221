package boards

import "github.com/earshot-dev/earshot/dashboards/internal/grafana"

func tokens() *grafana.Dashboard {
	d := grafana.New("earshot-tokens", "Earshot / Tokens and cost", "Input and output of models, in tokens and dollars. Classes of tokens exclude each other; costs are those that records state, else at the prices of the table model_prices.")
	d.Annotations.List = marks()
	d.Templating.List = choices("format", "agent", "model", "tenant")
	chosen := where("format", "agent", "model", "tenant")
	const conversation = "cityHash64(session_id) + cityHash64(toString(tenant))"
	const none = "No tokens were reported in this range"

	d.Row(4,
		grafana.Stat("Cost", "As the records of responses state it, else at list prices; models and tiers without a price are left out.", "currencyUSD", sql(`
SELECT sum(cost_picodollars) / 1e12 AS cost
FROM v_usage
`+chosen)).Compared(grafana.Lower).Empty("unknown"),
		grafana.Stat("Tokens", "All classes together.", "short", sql(`
SELECT sum(tokens) AS tokens
FROM v_usage
`+chosen)).Compared(grafana.Neither).Empty("none"),
		grafana.Stat("Output tokens", "Reasoning among them.", "short", sql(`
SELECT sum(output_tokens + reasoning_tokens) AS output
FROM v_usage
`+chosen)).Compared(grafana.Neither).Empty("none"),
		grafana.Stat("Read from caches", "Share of the input that was read from a cache.", "percentunit", sql(`
SELECT sum(cache_read_tokens) / nullIf(sum(input_tokens + cache_read_tokens + cache_write_tokens), 0) AS cached
FROM v_usage
`+chosen)).Compared(grafana.Higher).Empty("unknown"),
		grafana.Stat("Cost per conversation", "Mean over the conversations with a model that has a price.", "currencyUSD", sql(`
SELECT sum(cost_picodollars) / 1e12 / nullIf(uniqExactIf(`+conversation+`, has_price), 0) AS mean
FROM v_usage
`+chosen)).Compared(grafana.Lower).Empty("unknown"),
		grafana.Stat("Tokens without a price", "They are missing in every cost here. The table below names their models; insert prices into model_prices.", "short", sql(`
SELECT sumIf(tokens, NOT has_price) AS unpriced
FROM v_usage
`+chosen)).Warn(1, 1e6).Compared(grafana.Lower).Empty("0"),
	)
	d.Row(8,
		grafana.Bars("Tokens", "By class.", "short", sql(`
SELECT $__timeInterval(ts) AS time, sum(input_tokens) AS "input", sum(cache_read_tokens) AS "read from cache", sum(cache_write_tokens) AS "written to cache",
  sum(output_tokens) AS "output", sum(reasoning_tokens) AS "reasoning"
FROM v_usage
`+chosen+`
GROUP BY time
ORDER BY time`)).Every("5m").Empty(none),
		grafana.Bars("Cost", "By model.", "currencyUSD", sql(`
SELECT $__timeInterval(ts) AS time, model, sum(cost_picodollars) / 1e12 AS cost
FROM v_usage
`+chosen+`
  AND has_price
GROUP BY time, model
ORDER BY time, model`)).Every("5m").Empty("No tokens of models with a price in this range"),
	)
	// A set of hashes takes half of the time of one of texts, of which the engine keeps hashes, too.
	spent := func(title, description, column, expression, also, sessions string) *grafana.Panel {
		named := ""
		if also != "" {
			named = also + " AS Tenant"
		}
		return grafana.Table(title, description, sql(`
SELECT `+expression+` AS "`+column+`", sum(cost_picodollars) / 1e12 AS Cost, sum(tokens) AS Tokens, sum(input_tokens) AS Input, sum(cache_read_tokens) AS "Cache read",
  sum(cache_write_tokens) AS "Cache write", sum(output_tokens) AS Output, sum(reasoning_tokens) AS Reasoning,
  sum(cache_read_tokens) / nullIf(sum(input_tokens + cache_read_tokens + cache_write_tokens), 0) AS Cached,
  `+sessions+` AS Sessions, min(has_price) AS Priced`+named+`
FROM v_usage
`+chosen+`
GROUP BY "`+column+`"`+also+`
ORDER BY Cost DESC, Tokens DESC, "`+column+`"`+also+`
LIMIT 200`)).Field("Cost", grafana.Unit("currencyUSD"), grafana.Gauge()).Field("Cached", grafana.Unit("percentunit")).Empty(none)
	}
	d.Row(8, spent("By model", "Priced is 0 where a part of the tokens has no price.", "Model", "if(model = '', 'unknown', model)", "", "uniqExact("+conversation+")"))
	d.Row(8, spent("By agent", "Tokens belong to the agent that asked, not to those above it.", "Agent", agent, "", "uniqExact("+conversation+")"))
	d.Row(9, spent("By conversation", "The two hundred that cost most.", "Session", "session_id", ", tenant", "toUInt64(1)").Field("Session", toTenantSession, grafana.Columns(280)))
	d.Row(8,
		grafana.Series("Cost per day, at this pace", "The cost of a day at the rate of each interval. One that the range cuts counts for the part of it that is in the range, of a minute at least.", "currencyUSD", sql(`
SELECT $__timeInterval(ts) AS time, sum(cost_picodollars) / 1e12 * 86400000 / greatest(60000, least(1000 * (toUnixTimestamp(time) + $__interval_s), toUnixTimestamp64Milli($__toTime_ms))
    - greatest(1000 * toUnixTimestamp(time), toUnixTimestamp64Milli($__fromTime_ms))) AS "dollars a day"
FROM v_usage
`+chosen+`
GROUP BY time
ORDER BY time`)).Every("15m").Empty(none),
		grafana.Table("Prices", "US dollars for a million tokens, as v_usage uses them. Insert rows into model_prices to change them.", sql(`
SELECT model AS Model, valid_from AS "Valid from", input_usd_per_m AS Input, output_usd_per_m AS Output,
  cache_read_usd_per_m AS "Cache read", cache_write_usd_per_m AS "Cache write", origin AS Origin
FROM model_prices FINAL
ORDER BY Model, "Valid from"`)).Field("Input", grafana.Unit("currencyUSD")).Field("Output", grafana.Unit("currencyUSD")).
			Field("Cache read", grafana.Unit("currencyUSD")).Field("Cache write", grafana.Unit("currencyUSD")).Width(12).Empty("model_prices is empty: no cost is known"),
	)
	return d
}
