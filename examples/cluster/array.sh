#!/usr/bin/env bash
# A study as a SLURM job array: every task does its part of the runs into a store of its own.
#
#   sbatch --array=1-16 examples/cluster/array.sh study.toml results/stores
#   tstar runs merge results/stores/part-*.db --into results/all.db
#
#SBATCH --job-name=tstar
#SBATCH --cpus-per-task=4
#SBATCH --time=12:00:00
#SBATCH --requeue
# SLURM sends the interrupt two minutes before the end: the sweep stops cleanly, and goes on when the array is submitted again.
#SBATCH --signal=B:INT@120
# With GPUs, add: #SBATCH --gres=gpu:1
set -euo pipefail
study=${1:?usage: array.sh STUDY FOLDER}
folder=${2:?usage: array.sh STUDY FOLDER}
part=${SLURM_ARRAY_TASK_ID:?start it with sbatch --array=1-N}
parts=${SLURM_ARRAY_TASK_COUNT:?start it with sbatch --array=1-N}

mkdir -p "$folder"
# In place of this shell, so that SLURM's signals reach the sweep.
exec tstar sweep "$study" --part "$part/$parts" --store "$folder/part-$part.db" \
  --workers "${WORKERS:-${SLURM_CPUS_PER_TASK:-1}}" --checkpoint "${CHECKPOINT:-10}"
