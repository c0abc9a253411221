// Package config reads Earshot's configuration file.
//
// It is strict, because a key that is silently ignored is an incident later: an
// unknown or duplicate key, a value of the wrong type, a variable that is not set,
// anything that is known to be wrong without the network or the disk is a Problem
// with file, line, column and path. All of them are reported at once. Facts outside
// the file (which formats there are, whether a port is free) are checked by
// `earshot validate`, which makes its problems with Config.Problem.
//
// The structs are the one description of the file: their tags are its keys, their
// field comments are the comments of config.example.yaml, SetDefaults has their defaults.
// The sections of sources and exporters belong to their packages (see package spec); the
// caller passes their types as a list (Types).
//
// Surprises:
//
//   - Relative paths are relative to the folder of the file, so that every command
//     that reads the file uses the same store, from any directory. A leading
//     ~/ is $HOME. A bare ~ is YAML's null and reported.
//   - Variables are replaced after YAML has been parsed and in values only, so
//     that their text cannot become a key or a second value. A value is read as the type
//     of its key all the same: "${PORT}" is a number where a number belongs. In
//     options, where no type is known, quotes make a text of it.
//   - No problem shows the value of a variable, or any part of a Secret.
//   - A text takes any scalar as it is written: 1.10, no and 007 are kept.
//   - `key:` without a value is a default for a section, a list or a map, and a
//     problem for everything else.
//   - Anchors, aliases and "<<" work. Their values are checked at every
//     place that uses it.
package config

//go:generate go run ./internal/writeexample ../../config.example.yaml
