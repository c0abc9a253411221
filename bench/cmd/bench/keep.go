package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// savedFigure is a figure that a mode saves in the work directory, for the page of goals.
type savedFigure struct {
	Value float64 `json:"value"` // the median
	Least float64 `json:"least"`
	Most  float64 `json:"most"`
	// Busy is set when other work took too much of the machine for the figure to mean much.
	Busy bool `json:"busy,omitempty"`
	// Version is that of the measured Earshot.
	Version string `json:"version"`
}

func (e *env) figuresFile() string { return filepath.Join(e.work, "figures.json") }

// load returns the saved figures by name.
func (e *env) load() (map[string]savedFigure, error) {
	out := make(map[string]savedFigure)
	b, err := os.ReadFile(e.figuresFile())
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		return nil, fmt.Errorf("figures: %w", err)
	}
	return out, nil
}

// publish prints a page. With a file for the report it writes the page there and saves its
// figures: those of a short run are not for the page of goals.
func (e *env) publish(o options, page string, figures map[string]savedFigure) error {
	fmt.Print(page)
	if o.report == "" {
		return nil
	}
	if err := e.save(figures); err != nil {
		return err
	}
	return os.WriteFile(o.report, []byte(page), 0o644)
}

// save adds figures to the saved ones.
func (e *env) save(figures map[string]savedFigure) error {
	all, err := e.load()
	if err != nil {
		return err
	}
	version := e.version()
	for name, k := range figures {
		k.Version = version
		all[name] = k
	}
	b, err := json.MarshalIndent(all, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(e.figuresFile(), append(b, '\n'), 0o644)
}

// spread is a figure of several measurements.
func spread(values []float64) savedFigure {
	mid, least, most := middle(values)
	return savedFigure{Value: mid, Least: least, Most: most}
}
