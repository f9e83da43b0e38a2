"""The selective scan of a state space model, as an NKI 0.1 kernel."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def selective_scan_kernel(delta, u, a, b, c):
  """Computes, for every channel and with a state of N numbers,

      state[t] = exp(delta[t] * a) * state[t - 1] + delta[t] * u[t] * b[t]
      y[t] = sum over the state of c[t] * state[t]

  Args:
      delta: the time steps, of shape [D, T]
      u: the inputs, of shape [D, T]
      a: the decay of every state, of shape [D, N]
      b: what goes into a state, of shape [N, T]
      c: what comes out of a state, of shape [N, T]

  Returns:
      a tensor y of the shape and dtype of u
  """
  channels, steps = delta.shape
  _, n_states = a.shape
  y = nl.ndarray((channels, steps), dtype=u.dtype, buffer=nl.shared_hbm)

  i_p = nl.arange(128)[:, None]
  i_t = nl.arange(steps)[None, :]
  i_n = nl.arange(n_states)[None, :]
  i_one = nl.arange(1)[:, None]

  for t in nl.affine_range((channels + 127) // 128):
    inside = t * 128 + i_p < channels
    delta_tile = nl.load(delta[t * 128 + i_p, i_t], dtype=np.float32, mask=inside)
    u_tile = nl.load(u[t * 128 + i_p, i_t], dtype=np.float32, mask=inside)
    a_tile = nl.load(a[t * 128 + i_p, i_n], dtype=np.float32, mask=inside)
    delta_u = nl.multiply(delta_tile, u_tile)

    total = nl.zeros((nl.par_dim(128), steps), dtype=np.float32, buffer=nl.sbuf)
    for n in nl.affine_range(n_states):
      # The same rows of b and c for all channels
      b_row = nl.load(b[n + i_one, i_t], dtype=np.float32)
      c_row = nl.load(c[n + i_one, i_t], dtype=np.float32)

      decay = nisa.activation(op=nl.exp, data=delta_tile, scale=a_tile[i_p, n], dtype=np.float32)
      fed = nl.multiply(delta_u, b_row.broadcast_to((128, steps)))

      # A recurrence along the free axis is one instruction
      states = nisa.tensor_tensor_scan(decay, fed, initial=0.0, op0=np.multiply, op1=np.add)

      seen = nl.multiply(states, c_row.broadcast_to((128, steps)))
      total[i_p, i_t] = nl.add(total[i_p, i_t], seen)

    nl.store(y[t * 128 + i_p, i_t], value=nl.copy(total, dtype=u.dtype), mask=inside)

  return y


if __name__ == "__main__":
  D, T, N = 200, 64, 4
  delta, u = np.random.rand(D, T).astype(np.float32), np.random.rand(D, T).astype(np.float32)
  a = -np.random.rand(D, N).astype(np.float32)
  b, c = np.random.rand(N, T).astype(np.float32), np.random.rand(N, T).astype(np.float32)
  output_nki = selective_scan_kernel(delta, u, a, b, c)

  state, output_np = np.zeros((D, N), np.float32), np.zeros((D, T), np.float32)
  for t in range(T):
    step = delta[:, t, None]
    state = np.exp(step * a) * state + step * u[:, t, None] * b[None, :, t]
    output_np[:, t] = state @ c[:, t]

  allclose = np.allclose(output_nki, output_np, rtol=1e-4)
  print("NKI and NumPy match" if allclose else "NKI and NumPy differ")
  assert allclose
