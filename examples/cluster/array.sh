#!/usr/bin/env bash
# A study as a SLURM job array: every task does its part of the runs into a store of its own.
#
#   sbatch --array=1-16 examples/cluster/array.sh study.toml results/stores 16
#   tstar runs merge results/stores/part-*.db --into results/all.db
#
# The number of parts is the third word, not the size of the array: a few tasks may be submitted again
# (--array=2,5) and do their own parts. What follows goes to tstar sweep.
#SBATCH --job-name=tstar
#SBATCH --cpus-per-task=4
#SBATCH --time=12:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
# SLURM sends the interrupt to this shell two minutes before the end.
#SBATCH --signal=B:INT@120
# With GPUs, add: #SBATCH --gres=gpu:1 (one run per GPU by default, else one per core)
set -euo pipefail
study=${1:?usage: array.sh STUDY FOLDER PARTS [OPTIONS]}
folder=${2:?usage: array.sh STUDY FOLDER PARTS [OPTIONS]}
parts=${3:?usage: array.sh STUDY FOLDER PARTS [OPTIONS]}
part=${SLURM_ARRAY_TASK_ID:?start it with sbatch --array=1-$parts}

mkdir -p "$folder"
trap 'signaled=1; kill -TERM $(jobs -p) 2>/dev/null || true' INT TERM # the sweep may have ended already
tstar sweep "$study" --part "$part/$parts" --store "$folder/part-$part.db" \
  --checkpoint "${CHECKPOINT:-10}" "${@:4}" &
sweep=$!
signaled=1
while [ "$signaled" = 1 ]; do # a signal ends the wait, not the sweep
  signaled=0 code=0
  wait "$sweep" || code=$?
done
# Out of time (stopped by the signal: 143), out of memory (75, or 137 if the sweep itself was killed): go on in a new job.
case $code in
  75 | 137 | 143)
    [ "${SLURM_RESTART_COUNT:-0}" -lt "${RESTARTS:-50}" ] || exit "$code"
    scontrol requeue "${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}_$part"
    exit 0
    ;;
esac
exit "$code"
