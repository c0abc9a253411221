package grafana

func panel(kind, title, description, unit string, targets ...Target) *Panel {
	return &Panel{
		Type: kind, Title: title, Description: description, Datasource: source, Targets: targets, GridPos: GridPos{W: 12},
		FieldConfig: &FieldConfig{Defaults: Defaults{Unit: unit}, Overrides: []Override{}},
	}
}

// Stat shows one number.
func Stat(title, description, unit, sql string) *Panel {
	p := panel("stat", title, description, unit, target("A", AsTable, sql)).Width(4)
	p.FieldConfig.Defaults.Color = map[string]any{"mode": "fixed", "fixedColor": "text"}
	p.Options = map[string]any{
		"reduceOptions": map[string]any{"calcs": []string{"lastNotNull"}, "fields": "", "values": false},
		"colorMode":     "value", "graphMode": "none", "textMode": "auto", "justifyMode": "auto", "orientation": "auto",
	}
	return p
}

// Series draws lines: sql returns a column time, numbers, and texts that name the
// series, in the order of time.
func Series(title, description, unit, sql string) *Panel {
	p := panel("timeseries", title, description, unit, target("A", AsSeries, sql))
	p.FieldConfig.Defaults.Custom = map[string]any{
		"drawStyle": "line", "lineWidth": 1, "fillOpacity": 10, "showPoints": "auto", "spanNulls": false,
		"stacking": map[string]any{"mode": "none", "group": "A"},
	}
	p.FieldConfig.Defaults.Min = new(float64)
	p.Options = map[string]any{
		"legend":  map[string]any{"displayMode": "table", "placement": "right", "showLegend": true, "calcs": []string{"max", "lastNotNull"}, "sortBy": "Max", "sortDesc": true},
		"tooltip": map[string]any{"mode": "multi", "sort": "desc"},
	}
	return p
}

// Bars is Series with stacked bars, for counts per point.
func Bars(title, description, unit, sql string) *Panel {
	p := Series(title, description, unit, sql)
	p.FieldConfig.Defaults.Custom = map[string]any{
		"drawStyle": "bars", "lineWidth": 0, "fillOpacity": 80, "showPoints": "never",
		"stacking": map[string]any{"mode": "normal", "group": "A"},
	}
	p.Options.(map[string]any)["legend"] = map[string]any{"displayMode": "table", "placement": "right", "showLegend": true, "calcs": []string{"sum"}, "sortBy": "Total", "sortDesc": true}
	return p
}

// Heatmap draws a distribution over time: sql returns a column time and one column
// of counts for each bucket, named by its upper bound.
func Heatmap(title, description, sql string) *Panel {
	p := panel("heatmap", title, description, "short", target("A", AsSeries, sql))
	p.Options = map[string]any{
		"calculate": false,
		"rowsFrame": map[string]any{"layout": "le", "value": "Count"},
		"color":     map[string]any{"mode": "scheme", "scheme": "Oranges", "steps": 64, "exponent": 0.5, "reverse": false, "fill": "dark-orange"},
		"cellGap":   1,
		"yAxis":     map[string]any{"axisPlacement": "left"},
		"legend":    map[string]any{"show": true},
		"tooltip":   map[string]any{"mode": "single", "yHistogram": true},
		"showValue": "never",
	}
	return p
}

// Table shows rows.
func Table(title, description, sql string) *Panel {
	p := panel("table", title, description, "short", target("A", AsTable, sql)).Width(24)
	p.FieldConfig.Defaults.Custom = map[string]any{"align": "auto", "filterable": true, "inspect": true, "cellOptions": map[string]any{"type": "auto"}}
	p.Options = map[string]any{"showHeader": true, "cellHeight": "sm"}
	return p
}

// BarGauge compares named numbers: sql returns a text and a number.
func BarGauge(title, description, unit, sql string) *Panel {
	p := panel("bargauge", title, description, unit, target("A", AsTable, sql))
	p.FieldConfig.Defaults.Color = map[string]any{"mode": "palette-classic"}
	p.FieldConfig.Defaults.Min = new(float64)
	p.Options = map[string]any{
		"displayMode": "gradient", "orientation": "horizontal", "valueMode": "text", "showUnfilled": true,
		"reduceOptions": map[string]any{"calcs": []string{"lastNotNull"}, "fields": "", "values": true, "limit": 25},
	}
	return p
}

// NodeGraph draws who calls whom.
func NodeGraph(title, description, nodes, edges string) *Panel {
	p := panel("nodeGraph", title, description, "short", target("nodes", AsTable, nodes), target("edges", AsTable, edges))
	p.Options = map[string]any{"nodes": map[string]any{}, "edges": map[string]any{}, "layoutAlgorithm": "layered"}
	return p.Width(24)
}

// Traces draws a waterfall.
func Traces(title, description, sql string) *Panel {
	p := panel("traces", title, description, "ms", target("A", AsTraces, sql))
	return p.Width(24)
}
