// Package config reads Earshot's configuration file.
//
// It is strict, because a key that is silently ignored is an incident later: an
// unknown or duplicate key, a value of the wrong type, a variable that is not set,
// anything that is known to be wrong without asking the network or the disk is a
// Problem with file, line, column and path. All of them are reported at once. What
// only others know (which formats there are, whether a port is free) is checked by
// `earshot validate`, which makes its problems with Config.Problem.
//
// The structs are the one description of the file: their tags are its keys, their
// field comments are the comments of config.example.yaml. Defaults are in
// default.go and nowhere else.
//
// Surprises:
//
//   - Relative paths are relative to the folder of the file, so that every command
//     that is given the file means the same store, from whatever directory. A leading
//     ~/ is $HOME. A bare ~ is YAML's null and reported.
//   - Variables are replaced after YAML has been parsed and in values only, so what
//     they hold cannot become a key or a second value. A value is read as the type
//     of its key all the same: "${PORT}" is a number where a number belongs. In
//     options, where no type is known, quotes make a text of it.
//   - No problem shows what a variable stands for, or any part of a Secret.
//   - A text takes any scalar as it is written: 1.10, no and 007 stay what they are.
//   - `key:` without a value is a default for a section, a list or a map, and a
//     problem for everything else.
//   - Anchors, aliases and "<<" work. What stands behind them is checked at every
//     place that uses it.
package config

//go:generate go run ./internal/writeexample ../../config.example.yaml
