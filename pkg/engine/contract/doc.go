// Package contract checks that a Reader and a Source keep their promises,
// whatever stands behind them: it is for tests, like testing/fstest.
package contract
