// Package dashboards has Earshot's Grafana dashboards, as files that Grafana
// provisions. They are written from dashboards/internal/boards; a test fails when
// the two differ, and runs every query of them. Package board reads the same
// definition for who draws the boards without Grafana.
package dashboards

import "embed"

//go:generate go run ./internal/write

// Files are the dashboards, in Grafana's Classic JSON.
//
//go:embed *.json
var Files embed.FS
